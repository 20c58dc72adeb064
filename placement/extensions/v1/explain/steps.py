"""The effect of each rule of a search, with the part of the query that states the rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from placement.extensions.v1 import query_text
from placement.extensions.v1.explain.class_inventories import InventoriesByClass
from placement.extensions.v1.explain.conditions import Condition, group_of
from placement.extensions.v1.explain.explanation import Combination, Extent, Step
from placement.extensions.v1.explain.variations import QueryChange
from placement.index.slots import EMPTY, SlotSet
from placement.index.snapshot import SHARES, Snapshot
from placement.search.query.query import UNSUFFIXED, SearchQuery
from placement.search.refusals import Refusal, Refusals
from placement.search.solver.constraints import NotOnlyShared, RequiredTraits, SummedAmounts

#: Removed providers listed per step.
MAX_REMOVED = 5


def steps(query: SearchQuery, snapshot: Snapshot, refusals: Refusals, amounts: InventoriesByClass) -> tuple[Step, ...]:
    """Return the narrowing rules in the order of their application.

    Equal groups are narrowed once; their steps carry the suffix of the first one.  A sharing provider counts only while
    it shares with a remaining tree, or is part of one.
    """
    remaining = _RemainingTrees(snapshot, query.avoided)
    applied: list[Step] = []
    for refusal in refusals.narrowing:
        if refusal.rule == NotOnlyShared.name:
            continue
        step = _step(query, refusal, remaining, amounts)
        if step.rule == "group" and refusal.suffix == UNSUFFIXED:
            # Each class of this group is a demand; the preceding step is about its amount.
            step = replace(step, parameter=applied[-1].parameter)
        applied.append(step)
        if refusal.whole_trees:
            remaining.keep(refusal.after)
    return tuple(applied)


class _RemainingTrees:
    """The providers that can supply a remaining tree."""

    def __init__(self, snapshot: Snapshot, avoided: Iterable[str]) -> None:
        self._snapshot = snapshot
        self._forest = snapshot.forest
        self._sharing = snapshot.with_trait(SHARES)
        roots = snapshot.forest.all_roots & SlotSet.union([*map(snapshot.with_trait, avoided)], snapshot.size)
        #: Providers of the trees that the service avoids.
        self.avoided = snapshot.forest.trees_of(roots) if roots else EMPTY
        #: Roots of the remaining trees; None while all trees remain.
        self._roots: SlotSet | None = None
        #: The providers that can supply these trees; computed on first use.
        self._supplying: SlotSet | None = None

    def keep(self, roots: SlotSet) -> None:
        """Keep only the trees with these roots."""
        self._roots, self._supplying = roots, None

    def supplying_providers(self, providers: SlotSet) -> SlotSet:
        """Return the providers in a set that can supply a remaining tree."""
        if self._roots is None:
            return providers
        if self._supplying is None:
            members = self._forest.trees_of(self._roots)
            reached = [slot for slot in self._sharing.slots().tolist() if self._shares_with(slot, members)]
            self._supplying = members | SlotSet.from_slots(np.array(reached, np.intp), self._snapshot.size)
        return providers & self._supplying

    def _shares_with(self, slot: int, members: SlotSet) -> bool:
        in_aggregate = self._snapshot.in_aggregate
        return any(in_aggregate(aggregate) & members for aggregate in self._snapshot.provider(slot).aggregates)

    def extent(self, members: SlotSet, *, whole_trees: bool) -> Extent:
        """Return the extent of a set of providers, or of the trees with these roots."""
        if whole_trees:
            return Extent(self._forest.trees_of(members).count, members.count)
        return Extent(members.count, self._forest.roots_of(members).count)


def _step(query: SearchQuery, refusal: Refusal, remaining: _RemainingTrees, amounts: InventoriesByClass) -> Step:
    rule, _, resource_class = refusal.rule.partition(":")
    before, after, whole_trees = refusal.before, refusal.after, refusal.whole_trees
    if not whole_trees:
        before, after = remaining.supplying_providers(before), remaining.supplying_providers(after)
    shortfall = None
    if resource_class:
        amount = group_of(query, refusal.suffix or "").resources[resource_class]
        shortfall = amounts.shortfall(resource_class, amount, before, after, remaining.avoided)
    return Step(
        rule=rule,
        parameter=_step_parameter(query, refusal),
        group=refusal.suffix,
        before=remaining.extent(before, whole_trees=whole_trees),
        after=remaining.extent(after, whole_trees=whole_trees),
        removed=tuple((before - after).slots()[:MAX_REMOVED].tolist()),
        amounts=shortfall,
        whole_trees=whole_trees,
        avoided=rule == "root_required" and bool(query.avoided) and refusal.names == query.avoided,
    )


def _step_parameter(query: SearchQuery, refusal: Refusal) -> str:
    """Return the part of the query that a narrowing refusal comes from."""
    rule, _, resource_class = refusal.rule.partition(":")
    suffix = refusal.suffix or ""
    any_of, none_of = (refusal.names, ()) if isinstance(refusal.names, tuple) else ((), refusal.names)
    match rule:
        case "resources":
            pairs = [
                query_text.resources(suffix, [(resource_class, group_of(query, suffix).resources[resource_class])])
            ]
        case "required":
            pairs = [*query_text.trait_parameters(suffix, any_of, none_of)]
        case "root_required":
            pairs = [query_text.root_required(any_of, none_of)]
        case "member_of":
            pairs = [*query_text.member_of(suffix, any_of, none_of)]
        case "in_tree":
            pairs = [query_text.in_tree(suffix, str(group_of(query, suffix).in_tree))]
        case _:
            pairs = [*query_text.group_pairs(group_of(query, suffix))]
    return query_text.text(pairs)


def combinations(query: SearchQuery, refusals: Refusals, changes: Iterable[QueryChange]) -> tuple[Combination, ...]:
    """Return the rules that rejected trees in which each demand can be supplied separately.

    Rules whose change is known to produce candidates come first, then the rules that rejected the most trees.

    Args:
        changes: The changes that produce candidates.
    """
    changed = {_constraint_of(condition) for change in changes for condition in change.conditions}
    trees = {name: count for name, count in refusals.combining.items() if name != NotOnlyShared.name}
    return tuple(
        Combination(
            rule=constraint.partition(":")[0],
            parameter=_combination_parameter(query, constraint),
            trees=trees[constraint],
            examples=tuple(refusals.examples[constraint]),
        )
        for constraint in sorted(trees, key=lambda name: (name not in changed, -trees[name]))
    )


def _constraint_of(condition: Condition) -> str:
    """Return the name of the constraint that a condition is part of, or the kind of the condition."""
    match condition.kind:
        case "amount":
            return SummedAmounts.name_for(condition.resource_class)
        case "trait" if condition.suffix == UNSUFFIXED:
            return RequiredTraits.name
        case kind:
            return kind


def _combination_parameter(query: SearchQuery, constraint: str) -> str:
    """Return the part of the query that a solver constraint comes from; empty for a constraint without one."""
    rule, _, resource_class = constraint.partition(":")
    pairs: list[query_text.Pair] = []
    match rule:
        case "resources":
            pairs = [
                query_text.resources(group.suffix, [(resource_class, group.resources[resource_class])])
                for group in query.groups
                if resource_class in group.resources
            ]
        case "group_policy":
            pairs = [("group_policy", "isolate")]
        case "same_subtree":
            pairs = [*map(query_text.same_subtree, query.same_subtrees)]
        case "required":
            pairs = [*query_text.trait_parameters("", group_of(query, UNSUFFIXED).traits.any_of, ())]
    return query_text.text(pairs)
