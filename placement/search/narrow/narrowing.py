"""The providers that could supply each demand, and the trees in which every demand could be supplied.

Each rule of a query about one provider, or one tree, is a set operation over all providers of a snapshot.  Rules about
several providers of a candidate are left to the solver, so the result contains no candidates yet.  Each rule is
recorded with the sets before and after it (``refusals``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placement.index.slots import EMPTY, SlotSet, intersection
from placement.index.snapshot import SHARES, Snapshot
from placement.search.budget import Budget
from placement.search.query.query import UNSUFFIXED, AnyOf, Group, SearchQuery
from placement.search.refusals import Refusal, Refusals

#: Operations of the budget per set operation; slots per additional operation.
_SET_OPERATION, _SLOTS_PER_OPERATION = 5, 2_000
#: Number of set operations that cost as much as comparing an amount with all inventories of a class.
_FITTING = 5


@dataclass(frozen=True, slots=True, eq=False)
class Eligible:
    """The providers that can supply a demand on their own."""

    #: The providers that can supply it in their own tree.
    local: SlotSet
    #: The providers in ``local`` that can also supply it in the trees with which they share.
    sharing: SlotSet


class Narrowed(NamedTuple):
    """The result of narrowing."""

    snapshot: Snapshot
    query: SearchQuery
    #: The eligible providers, by demand; the same object for equal demands.  Empty if no tree is left.
    eligible: tuple[Eligible, ...]
    #: The roots of the trees in which each demand can be supplied on its own.
    roots: SlotSet


def narrow(
    query: SearchQuery, snapshot: Snapshot, budget: Budget, refusals: Refusals, roots: SlotSet | None = None
) -> Narrowed:
    """Return the providers and trees that could serve the query.

    Args:
        roots: The roots of the trees to search; None for all trees.

    Raises:
        Exhausted: The budget is exhausted.
    """
    narrowing = _Narrowing(snapshot, budget, refusals)
    if roots is not None:
        narrowing.begin_with(roots)
    narrowing.apply_root_rules(query)
    eligible: list[Eligible] = []
    for group in query.groups:
        if not narrowing.roots:
            return Narrowed(snapshot, query, (), narrowing.roots)
        eligible.extend(narrowing.eligible(group))
    narrowing.leave_out_avoided(query.avoided)
    return Narrowed(snapshot, query, tuple(eligible), narrowing.roots)


def providers_serving(group: Group, snapshot: Snapshot) -> SlotSet:
    """Return the providers that can each serve the whole group, without regard to trees and sharing."""
    narrowing = _Narrowing(snapshot, None, Refusals())
    return narrowing.with_capacity(group, group.resources, narrowing.meeting_rules(group))


def roots_served(narrowed: Narrowed, providers: Collection[int]) -> SlotSet:
    """Return the roots of the trees in which the providers of a candidate can supply it."""
    narrowing = _Narrowing(narrowed.snapshot, None, Refusals())
    roots = narrowed.roots
    for slot in providers:
        provider = SlotSet.sparse(np.array([slot], np.intp))
        own_root = SlotSet.sparse(narrowed.snapshot.forest.roots(provider.slots()))
        if not any(provider & eligible.sharing for eligible in narrowed.eligible):
            return own_root
        roots &= own_root | narrowing.roots_shared_with(provider)
    return roots


class _Narrowing:
    """The state of narrowing: the trees that remain."""

    def __init__(self, snapshot: Snapshot, budget: Budget | None, refusals: Refusals) -> None:
        """Begin with all trees.

        Args:
            budget: None for an unlimited search.
        """
        self.roots = snapshot.forest.all_roots
        self._snapshot = snapshot
        self._forest = snapshot.forest
        self._refusals = refusals
        self._sharing = snapshot.with_trait(SHARES)
        self._some_share = bool(self._sharing)
        #: The eligible providers by the rules of a suffixed group, because equal groups are narrowed once.
        self._eligible_by_rules: dict[Hashable, Eligible] = {}
        #: Roots of the trees with a member in at least one of these aggregates.
        self._trees_in: dict[frozenset[str], SlotSet] = {}
        self._budget = budget
        #: Operations of the budget per set operation.
        self._price = _SET_OPERATION + snapshot.size // _SLOTS_PER_OPERATION

    def begin_with(self, roots: SlotSet) -> None:
        """Leave out all trees except those with these roots; set operations on a few trees are cheap."""
        self.roots = roots
        if roots.is_sparse:
            self._price = _SET_OPERATION + roots.count // _SLOTS_PER_OPERATION

    # --- records and costs ---

    def _record(
        self,
        rule: str,
        suffix: str | None,
        before: SlotSet,
        after: SlotSet,
        names: AnyOf | frozenset[str] = (),
        whole_trees: bool = False,
    ) -> SlotSet:
        """Record the effect of a rule, and return ``after``; the arguments are fields of ``Refusal``."""
        self._spend(1, after.nbytes)
        self._refusals.narrowing.append(Refusal(rule, suffix, before, after, self._forest, names, whole_trees))
        return after

    def _spend(self, set_operations: int, size: int = 0) -> None:
        """Charge the budget for set operations, and for the bytes of a set to keep.

        Raises:
            Exhausted: The budget is exhausted.
        """
        if self._budget is not None:
            self._budget.spend(set_operations * self._price)
            self._budget.hold(size)

    # --- rules about trees ---

    def apply_root_rules(self, query: SearchQuery) -> None:
        """Leave out trees by the rules for their roots and traits, before any inventories are read."""
        with_trait = self._snapshot.with_trait
        required, forbidden = query.root_traits.any_of, query.root_traits.none_of
        if required:
            self._keep_trees("root_required", None, self.roots & self._all_of(with_trait, required), required)
        if forbidden:
            self._keep_trees("root_required", None, self.roots - self._any_of(with_trait, forbidden), forbidden)
        for group in query.groups:
            if group.suffix != UNSUFFIXED:
                continue
            if group.aggregates.none_of:
                members = self._any_of(self._snapshot.in_aggregate, group.aggregates.none_of)
                self._keep_trees("member_of", UNSUFFIXED, self.roots - members, group.aggregates.none_of)
            if group.traits.any_of:
                self._keep_trees_with(group.traits.any_of)

    def leave_out_avoided(self, traits: frozenset[str]) -> None:
        """Leave out trees whose root the service avoids; the last step, so that it removes only usable trees."""
        if traits and (avoided := self.roots & self._any_of(self._snapshot.with_trait, traits)):
            self._keep_trees("root_required", None, self.roots - avoided, traits)

    def _keep_trees(self, rule: str, suffix: str | None, roots: SlotSet, names: AnyOf | frozenset[str] = ()) -> None:
        self.roots = self._record(rule, suffix, self.roots, roots, names, whole_trees=True)

    def _keep_trees_with(self, required: AnyOf, providers: SlotSet | None = None) -> None:
        """Leave out trees in which no provider has a trait of one of the sets.

        Args:
            providers: The providers whose traits count; None for all.
        """
        roots = self.roots
        for traits in required:
            with_traits = self._any_of(self._snapshot.with_trait, traits)
            if providers is not None:
                with_traits &= providers
            roots &= self._roots_supplied_by(with_traits)
        self._keep_trees("required", UNSUFFIXED, roots, required)

    def _roots_supplied_by(self, providers: SlotSet) -> SlotSet:
        """Return the roots of the trees that contain one of the providers, or with which one of them shares."""
        roots = self._forest.roots_of(providers)
        if self._some_share:
            roots |= self.roots_shared_with((providers & self._sharing).compact())
        return roots

    def roots_shared_with(self, sharing: SlotSet) -> SlotSet:
        """Return the roots of the trees with which sharing providers share; their own may be missing."""
        self._spend(1 + sharing.count // _SET_OPERATION)
        provider = self._snapshot.provider
        aggregates = frozenset().union(*(provider(slot).aggregates for slot in sharing.slots().tolist()))
        if aggregates not in self._trees_in:
            members = self._any_of(self._snapshot.in_aggregate, aggregates)
            self._trees_in[aggregates] = self._forest.roots_of(members)
        return self._trees_in[aggregates]

    # --- sets of names ---

    def _any_of(self, with_name: Callable[[str], SlotSet], names: Collection[str]) -> SlotSet:
        """Return the providers that have one of the names."""
        self._spend(len(names))
        return SlotSet.union([with_name(name) for name in names], self._forest.size)

    def _all_of(self, with_name: Callable[[str], SlotSet], any_of: AnyOf) -> SlotSet:
        """Return the providers that have one name of each set; ``any_of`` must not be empty."""
        return intersection(self._any_of(with_name, names) for names in any_of)

    # --- groups ---

    def eligible(self, group: Group) -> list[Eligible]:
        """Return the eligible providers for each demand of the group, and leave out trees without them."""
        if group.suffix == UNSUFFIXED:
            matching, sharing = self._meeting_unsuffixed_rules(group)
            eligible = [
                self._eligible_providers(group, {name: amount}, matching, sharing)
                for name, amount in group.resources.items()
            ]
            if group.traits.any_of:
                # Only eligible providers can contribute the required traits.
                providers = SlotSet.union([demand.local for demand in eligible], self._forest.size)
                self._keep_trees_with(group.traits.any_of, providers)
            return eligible
        key = (frozenset(group.resources.items()), group.traits, group.aggregates, group.in_tree)
        if key not in self._eligible_by_rules:
            self._eligible_by_rules[key] = self._eligible_providers(
                group, group.resources, self.meeting_rules(group), self._sharing
            )
        return [self._eligible_by_rules[key]]

    def _meeting_common_rules(self, group: Group) -> SlotSet:
        """Return the providers of the remaining trees, and sharing providers, that meet the rules common to all groups.

        Every provider of a group must meet these rules on its own.
        """
        chosen = self._forest.trees_of(self.roots)
        if self._some_share:
            chosen |= self._sharing
        if group.in_tree is not None:
            chosen = self._record("in_tree", group.suffix, chosen, chosen & self._tree_of(group.in_tree))
        if group.traits.none_of:
            with_traits = self._any_of(self._snapshot.with_trait, group.traits.none_of)
            chosen = self._record("required", group.suffix, chosen, chosen - with_traits, group.traits.none_of)
        if group.aggregates.none_of:
            members = self._any_of(self._snapshot.in_aggregate, group.aggregates.none_of)
            chosen = self._record("member_of", group.suffix, chosen, chosen - members, group.aggregates.none_of)
        return chosen

    def _tree_of(self, uuid: str) -> SlotSet:
        """Return the providers of the tree that contains the provider; empty if it does not exist."""
        slot = self._snapshot.by_uuid.get(uuid)
        if slot is None:
            return EMPTY
        return SlotSet.sparse(np.array(self._forest.tree(self._snapshot.provider(slot).root), np.intp))

    def meeting_rules(self, group: Group) -> SlotSet:
        """Return the providers that meet every rule of a suffixed group, without regard to its resources."""
        chosen = self._meeting_common_rules(group)
        if group.aggregates.any_of:
            members = self._all_of(self._snapshot.in_aggregate, group.aggregates.any_of)
            chosen = self._record("member_of", group.suffix, chosen, chosen & members, group.aggregates.any_of)
        if group.traits.any_of:
            with_traits = self._all_of(self._snapshot.with_trait, group.traits.any_of)
            chosen = self._record("required", group.suffix, chosen, chosen & with_traits, group.traits.any_of)
        return chosen

    def _meeting_unsuffixed_rules(self, group: Group) -> tuple[SlotSet, SlotSet]:
        """Return the providers that meet the rules of the unsuffixed group, and the providers that may share.

        In its own tree, a provider meets ``member_of`` if it or its root is in the aggregates; to share, it must
        itself be in them.  ``required`` is left to ``eligible`` and to the solver.
        """
        chosen = self._meeting_common_rules(group)
        if not group.aggregates.any_of:
            return chosen, self._sharing
        members = self._all_of(self._snapshot.in_aggregate, group.aggregates.any_of)
        spanned = self._forest.trees_of(members & self._forest.all_roots) | members
        chosen = self._record("member_of", UNSUFFIXED, chosen, chosen & spanned, group.aggregates.any_of)
        return chosen, self._sharing & members

    def _eligible_providers(
        self, group: Group, resources: Mapping[str, int], matching: SlotSet, may_share: SlotSet
    ) -> Eligible:
        """Return the eligible providers for a demand, and leave out trees without them.

        Args:
            resources: The resources of the demand.
            matching: The providers that meet the rules of the group.
            may_share: The providers that may supply the demand in other trees if they have the resources.
        """
        local = self.with_capacity(group, resources, matching)
        sharing = (local & may_share).compact() if self._some_share else EMPTY
        roots = self._forest.roots_of(local)
        if sharing:
            roots |= self.roots_shared_with(sharing)
        self._keep_trees("group", group.suffix, self.roots & roots)
        return Eligible(local, sharing)

    def with_capacity(self, group: Group, resources: Mapping[str, int], chosen: SlotSet) -> SlotSet:
        """Return the chosen providers in which each amount fits."""
        for name, amount in resources.items():
            self._spend(_FITTING)
            column = self._snapshot.column(name)
            fitting = EMPTY if column is None else column.fitting_slots(amount, chosen)
            chosen = self._record(f"resources:{name}", group.suffix, chosen, fitting)
        return chosen
