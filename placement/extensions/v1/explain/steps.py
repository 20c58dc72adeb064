"""What each rule of a search removed, in the words of the query."""

from __future__ import annotations

from placement.extensions.v1 import query_text as write
from placement.extensions.v1.explain.amounts import AmountsByClass
from placement.extensions.v1.explain.conditions import group_of
from placement.extensions.v1.explain.explanation import Combination, Extent, Step
from placement.index.forest import Forest
from placement.index.slots import SlotSet
from placement.index.snapshot import Snapshot
from placement.search.query.query import SearchQuery
from placement.search.refusals import Refusal, Refusals
from placement.search.solver.constraints import NotOnlyShared

#: How many of the removed providers are named.
NAMED = 5

#: The rule of trees whose candidates an earlier tree has, too, because only sharing providers supply them.
SHARED = "shared"


def steps(query: SearchQuery, snapshot: Snapshot, refusals: Refusals, amounts: AmountsByClass) -> tuple[Step, ...]:
    """Return the rules in the order in which they were applied.

    Equal groups are narrowed once: the steps have the suffix of the first one.
    """
    applied = [refusal for refusal in refusals.narrowing if refusal.rule != NotOnlyShared.name]
    extents = _Extents(snapshot.forest)
    return tuple(_step(query, refusal, extents, amounts) for refusal in applied)


class _Extents:
    """Counts providers and trees, each set once: what one rule leaves, the next one has before."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        #: The sets are kept, so that their ids stay theirs.
        self._known: dict[tuple[int, bool], tuple[SlotSet, Extent]] = {}

    def of(self, members: SlotSet, whole_trees: bool) -> Extent:
        """Return the extent of a set of providers, or of the trees that have these roots."""
        key = id(members), whole_trees
        if key not in self._known:
            providers = self._forest.trees_of(members) if whole_trees else members
            roots = members if whole_trees else self._forest.roots_of(members)
            self._known[key] = members, Extent(providers.count, roots.count)
        return self._known[key][1]


def _step(query: SearchQuery, refusal: Refusal, extents: _Extents, amounts: AmountsByClass) -> Step:
    rule, _, resource_class = refusal.rule.partition(":")
    in_the_way = None
    if resource_class:
        amount = group_of(query, refusal.suffix or "").resources[resource_class]
        in_the_way = amounts.in_the_way(resource_class, amount, refusal.before, refusal.after)
    return Step(
        rule,
        step_parameter(query, refusal),
        refusal.suffix,
        extents.of(refusal.before, refusal.whole_trees),
        extents.of(refusal.after, refusal.whole_trees),
        tuple((refusal.before - refusal.after).slots()[:NAMED].tolist()),
        in_the_way,
    )


def step_parameter(query: SearchQuery, refusal: Refusal) -> str:
    """Return the part of the query that a refusal of narrowing comes from."""
    rule, _, resource_class = refusal.rule.partition(":")
    suffix = refusal.suffix or ""
    any_of, none_of = (refusal.names, ()) if isinstance(refusal.names, tuple) else ((), refusal.names)
    match rule:
        case "resources":
            pairs = [write.resources(suffix, [(resource_class, group_of(query, suffix).resources[resource_class])])]
        case "required":
            pairs = [*write.required(suffix, any_of, none_of)]
        case "root_required":
            pairs = [("root_required", value) for _, value in write.required("", any_of, none_of)]
        case "member_of":
            pairs = [*write.member_of(suffix, any_of, none_of)]
        case "in_tree":
            pairs = [(f"in_tree{suffix}", str(group_of(query, suffix).in_tree))]
        case _:
            pairs = [*write.group_pairs(group_of(query, suffix))]
    return write.text(pairs)


def combinations(query: SearchQuery, refusals: Refusals) -> tuple[Combination, ...]:
    """Return what ruled out the trees where each demand could be supplied by itself, most trees first."""
    trees = dict(refusals.combining)
    examples = {constraint: list(roots) for constraint, roots in refusals.examples.items()}
    for refusal in refusals.narrowing:
        if refusal.rule == NotOnlyShared.name:
            removed = (refusal.before - refusal.after).slots()
            trees[refusal.rule] = trees.get(refusal.rule, 0) + len(removed)
            examples[refusal.rule] = [*examples.get(refusal.rule, ()), *removed[:NAMED].tolist()]
    found = [
        Combination(
            _rule(constraint), combination_parameter(query, constraint), count, tuple(examples[constraint][:NAMED])
        )
        for constraint, count in trees.items()
        if count
    ]
    return tuple(sorted(found, key=lambda combination: -combination.trees))


def _rule(constraint: str) -> str:
    if constraint == NotOnlyShared.name:
        return SHARED
    return constraint.partition(":")[0]


def combination_parameter(query: SearchQuery, constraint: str) -> str:
    """Return the part of the query that a constraint of the solver comes from; empty for those that have none."""
    rule, _, resource_class = constraint.partition(":")
    pairs: list[write.Pair] = []
    match rule:
        case "resources":
            pairs = [
                write.resources(group.suffix, [(resource_class, group.resources[resource_class])])
                for group in query.groups
                if resource_class in group.resources
            ]
        case "group_policy":
            pairs = [("group_policy", "isolate")]
        case "same_subtree":
            pairs = [("same_subtree", ",".join(sorted(suffixes))) for suffixes in query.same_subtrees]
        case "required":
            pairs = [*write.required("", group_of(query, "").traits.any_of, ())]
    return write.text(pairs)
