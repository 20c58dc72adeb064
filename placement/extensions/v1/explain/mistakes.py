"""Mistakes in a query, regardless of usage: unknown names, excessive amounts, subtrees without a common ancestor."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import NamedTuple

import numpy as np

from placement.extensions.v1 import query_text
from placement.extensions.v1.explain.class_inventories import InventoriesByClass
from placement.extensions.v1.explain.conditions import Condition, with_changes
from placement.extensions.v1.explain.explanation import Mistake
from placement.extensions.v1.explain.recorded_search import BudgetedSearches, Outcome
from placement.index.slots import SlotSet, intersection
from placement.index.snapshot import Snapshot
from placement.search.query.query import UNSUFFIXED, Group, NameCondition, SearchQuery

#: Maximum number of mistakes reported.
_MAX_MISTAKES = 20
#: Maximum number of unknown names of a kind with suggestions, and of suggestions per name.
_MAX_MISSPELT, _MAX_SUGGESTIONS = 3, 3
#: Maximum number of known names examined, and of names compared: the names with the most common pairs of letters.
_MAX_KNOWN, _MAX_COMPARED = 5_000, 50
#: Maximum difference in length of similar names; maximum length of a name with suggestions.
_MAX_DIFFERENCE, _MAX_LENGTH = 3, 64
#: same_subtree parameters examined; trees examined for each; traits of a common ancestor tried.
_MAX_SUBTREES, _MAX_TREES, _MAX_TRAITS = 5, 50, 3


def mistakes(
    query: SearchQuery,
    outcome: Outcome,
    searches: BudgetedSearches,
    amounts: InventoriesByClass,
    unknown_traits: Collection[str],
) -> tuple[Mistake, ...]:
    """Return the mistakes in a query.

    Args:
        outcome: The outcome of its search.
        unknown_traits: The traits in the query that do not exist.
    """
    snapshot = searches.snapshot
    in_order = chain(
        _of_classes(query, snapshot, amounts),
        _of_traits(query, snapshot, unknown_traits),
        _of_places(query, snapshot),
        _of_amounts(query, amounts),
        _of_subtrees(query, outcome, searches),
    )
    return tuple(islice(in_order, _MAX_MISTAKES))


# --- names -----------------------------------------------------------------------------------------------------------


def _similar_names(name: str, candidates: Collection[str]) -> str | None:
    """Return the names with a similar spelling, separated by commas."""
    if len(name) > _MAX_LENGTH:
        return None
    pairs = {*pairwise(name)}
    similar = (
        candidate for candidate in islice(candidates, _MAX_KNOWN) if abs(len(candidate) - len(name)) <= _MAX_DIFFERENCE
    )
    compared = heapq.nlargest(_MAX_COMPARED, similar, lambda candidate: len(pairs.intersection(pairwise(candidate))))
    return ", ".join(difflib.get_close_matches(name, compared, _MAX_SUGGESTIONS)) or None


def _of_classes(query: SearchQuery, snapshot: Snapshot, amounts: InventoriesByClass) -> Iterator[Mistake]:
    absent = [name for name in sorted(query.resource_classes) if amounts.of_class(name) is None]
    candidates = [name for name in snapshot.class_ids if snapshot.column(name)] if absent else []
    for number, name in enumerate(absent):
        exists = name in snapshot.class_ids
        text = f"No provider has inventory of {name}." if exists else f"There is no resource class {name}."
        yield Mistake(
            "resource_class", name, text, _similar_names(name, candidates) if number < _MAX_MISSPELT else None
        )


def _of_traits(query: SearchQuery, snapshot: Snapshot, unknown: Collection[str]) -> Iterator[Mistake]:
    """Yield the traits that do not exist, and the required traits if no provider has any of the alternatives."""
    conditions = (query.root_traits, *(group.traits for group in query.groups))
    absent = {name for names in _without_any(conditions, snapshot.with_trait) for name in names}.union(unknown)
    candidates = [name for name in snapshot.traits if snapshot.with_trait(name)] if absent else []
    for number, name in enumerate(sorted(absent)):
        text = f"There is no trait {name}." if name in unknown else f"No provider has the trait {name}."
        yield Mistake("trait", name, text, _similar_names(name, candidates) if number < _MAX_MISSPELT else None)


def _of_places(query: SearchQuery, snapshot: Snapshot) -> Iterator[Mistake]:
    """Yield the required aggregates if no provider is in any alternative, and the trees that do not exist."""
    conditions = (group.aggregates for group in query.groups)
    for names in _without_any(conditions, snapshot.in_aggregate):
        yield Mistake("aggregate", min(names), f"No provider is in the aggregate {' or '.join(sorted(names))}.")
    for uuid in dict.fromkeys(group.in_tree for group in query.groups):
        if uuid is not None and uuid not in snapshot.by_uuid:
            yield Mistake("in_tree", uuid, f"There is no provider {uuid}.")


def _without_any(conditions: Iterable[NameCondition], providers: Callable[[str], SlotSet]) -> Iterator[frozenset[str]]:
    """Yield, once, each set of alternatives without a provider for any of them."""
    for names in dict.fromkeys(names for condition in conditions for names in condition.any_of):
        if not any(map(providers, names)):
            yield names


# --- amounts ---------------------------------------------------------------------------------------------------------


def _of_amounts(query: SearchQuery, amounts: InventoriesByClass) -> Iterator[Mistake]:
    """Yield the demands that no provider could supply even if nothing were used."""
    for group in query.groups[:_MAX_MISTAKES]:
        suitable: list[SlotSet] = []
        for name, amount in group.resources.items():
            inventories = amounts.of_class(name)
            if inventories is None:
                continue
            largest = int(inventories.largest_if_unused.max())
            if amount > largest:
                yield _excessive_amount(group.suffix, name, amount, largest)
            else:
                suitable.append(SlotSet.sparse(inventories.slots[inventories.largest_if_unused >= amount]))
        if len(suitable) == len(group.resources) > 1 and group.suffix != UNSUFFIXED and not intersection(suitable):
            part = query_text.text([query_text.resources(group.suffix, group.resources.items())])
            yield Mistake("amount", part, f"No single provider could ever supply {part}.")


def _excessive_amount(suffix: str, resource_class: str, amount: int, largest: int) -> Mistake:
    part, largest_part = (
        query_text.text([query_text.resources(suffix, [(resource_class, number)])]) for number in (amount, largest)
    )
    text = f"No provider could ever supply {part}: the most {resource_class} that any inventory allows is {largest:,}."
    return Mistake("amount", part, text, largest_part if largest else None)


# --- subtrees --------------------------------------------------------------------------------------------------------


def _of_subtrees(query: SearchQuery, outcome: Outcome, searches: BudgetedSearches) -> Iterator[Mistake]:
    if outcome.candidates or not outcome.roots:
        return
    trees = _Trees(query, outcome, searches.snapshot)
    for suffixes in islice(query.same_subtrees, _MAX_SUBTREES):
        if len(suffixes) > 1 and not trees.has_common_ancestor(suffixes):
            part = query_text.text([query_text.same_subtree(suffixes)])
            scope = "any tree" if trees.all_examined else f"any of the {_MAX_TREES} trees examined"
            text = (
                f"{part} is not met in {scope}: no provider that fits one group is at or above providers that fit "
                "the others. A group without resources can represent their common ancestor."
            )
            yield Mistake("same_subtree", part, text, _ancestor_group(query, suffixes, searches))


class _Trees:
    """The first trees that narrowing left, with the providers that fit each group.

    Attributes:
        all_examined: Whether these are all the trees that narrowing left.
    """

    def __init__(self, query: SearchQuery, outcome: Outcome, snapshot: Snapshot) -> None:
        assert outcome.narrowed is not None
        self._snapshot = snapshot
        self._eligible = {
            group.suffix: eligible for group, eligible in zip(_demands(query), outcome.narrowed.eligible, strict=True)
        }
        self._roots = outcome.narrowed.roots.slots()[:_MAX_TREES].tolist()
        self.all_examined = outcome.narrowed.roots.count <= _MAX_TREES
        self._fitting: dict[str, list[_Fitting]] = {}

    @cached_property
    def _trees(self) -> list[SlotSet]:
        return [SlotSet.sparse(np.array(self._snapshot.forest.tree(root), np.intp)) for root in self._roots]

    def has_common_ancestor(self, suffixes: frozenset[str]) -> bool:
        """Whether, in some tree, a provider that fits one group is at or above a provider for each other group."""
        if self._roots and any(self._eligible[suffix].sharing for suffix in suffixes):
            return True
        return any(
            frozenset.intersection(*(providers.ancestry for providers in fitting))
            & frozenset().union(*(providers.slots for providers in fitting))
            for fitting in zip(*map(self._fitting_trees, sorted(suffixes)), strict=True)
        )

    def _fitting_trees(self, suffix: str) -> list[_Fitting]:
        """Return the providers that fit a group, by tree."""
        if suffix not in self._fitting:
            self._fitting[suffix] = [self._of_tree(suffix, tree) for tree in self._trees]
        return self._fitting[suffix]

    def _of_tree(self, suffix: str, tree: SlotSet) -> _Fitting:
        slots = (self._eligible[suffix].local & tree).slots().tolist()
        return _Fitting(
            frozenset(slots), frozenset(ancestor for slot in slots for ancestor in self._snapshot.ancestry(slot))
        )


class _Fitting(NamedTuple):
    """The providers of one tree that fit a group."""

    slots: frozenset[int]
    #: These providers and all their ancestors.
    ancestry: frozenset[int]


def _demands(query: SearchQuery) -> Iterator[Group]:
    """Yield the group of each demand."""
    for group in query.groups:
        yield from [group] * (len(group.resources) if group.suffix == UNSUFFIXED else 1)


def _ancestor_group(query: SearchQuery, suffixes: frozenset[str], searches: BudgetedSearches) -> str | None:
    """Return parameters that add a group for the common ancestor and produce candidates; None if no trait does."""
    relaxed = with_changes(query, {Condition("same_subtree", names=suffixes): 0})
    if relaxed is None:
        return None
    snapshot = searches.snapshot
    traits: dict[str, int] = {}
    for candidate in searches.run(relaxed, _MAX_TREES).candidates:
        paths = [
            snapshot.ancestry(candidate.mappings[suffix][0]) for suffix in suffixes if suffix in candidate.mappings
        ]
        if not paths:
            continue
        common = next((slot for slot in paths[0] if all(slot in path for path in paths)), None)
        if common is not None:
            depth = len(snapshot.ancestry(common))
            for trait in snapshot.provider(common).traits:
                traits[trait] = max(depth, traits.get(trait, 0))
    suffix = _unused_suffix(query)
    for trait in sorted(traits, key=lambda name: (-traits[name], snapshot.with_trait(name).count, name))[:_MAX_TRAITS]:
        group = Group(suffix, traits=NameCondition((frozenset({trait}),)))
        subtrees = tuple(names | {suffix} if names == suffixes else names for names in query.same_subtrees)
        changed = replace(query, groups=(*query.groups, group), same_subtrees=subtrees)
        if searches.run(changed, 1).candidates:
            return query_text.text([*query_text.group_pairs(group), query_text.same_subtree(suffixes | {suffix})])
    return None


def _unused_suffix(query: SearchQuery) -> str:
    suffixes = {group.suffix for group in query.groups}
    return next(
        name for name in ("_TOP", *(f"_TOP{number}" for number in range(len(suffixes) + 1))) if name not in suffixes
    )
