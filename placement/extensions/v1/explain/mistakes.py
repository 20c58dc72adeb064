"""What is wrong with a query at any usage: names that mean nothing, amounts that are too large, odd subtrees."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from placement.extensions.v1 import query_text as write
from placement.extensions.v1.explain.amounts import AmountsByClass
from placement.extensions.v1.explain.conditions import Condition, without
from placement.extensions.v1.explain.explanation import Mistake
from placement.extensions.v1.explain.searching import Outcome, Searches
from placement.index.slots import SlotSet
from placement.index.snapshot import Snapshot
from placement.search.query.query import UNSUFFIXED, Group, NameCondition, SearchQuery

#: How many mistakes are named.
_NAMED = 20
#: For how many unknown names of a kind similar ones are suggested, and how many of them.
_MISSPELT, _SUGGESTED = 3, 3
#: How many known names are looked at; how many of them, those with most pairs of letters in common, are compared.
_KNOWN, _COMPARED = 5_000, 50
#: Similar names differ by at most so many letters in length; longer names are compared with none.
_LETTERS, _LONGEST = 3, 64
#: How many same_subtree are looked at, in how many trees; traits of a common ancestor that are tried.
_SUBTREES, _TREES, _TRAITS = 5, 50, 3


class Names(NamedTuple):
    """The names that exist, beyond those of the snapshot."""

    #: Those of the query that no trait has.
    unknown_traits: Collection[str] = frozenset()
    #: All traits, in use or not.
    traits: Collection[str] = ()


def mistakes(
    query: SearchQuery, outcome: Outcome, names: Names, searches: Searches, amounts: AmountsByClass
) -> tuple[Mistake, ...]:
    """Return the mistakes of a query.

    Args:
        outcome: That of its search.
    """
    snapshot = searches.snapshot
    found = [*_of_classes(query, snapshot, amounts), *_of_traits(query, snapshot, names)]
    found += [*_of_places(query, snapshot), *_of_amounts(query, amounts)]
    if not outcome.found and outcome.roots:
        found += _of_subtrees(query, outcome, searches)
    return tuple(found[:_NAMED])


# --- names -----------------------------------------------------------------------------------------------------------


def _similar(name: str, known: Collection[str]) -> str | None:
    """Return the names that are spelled nearly the same."""
    if len(name) > _LONGEST:
        return None
    pairs = {*pairwise(name)}
    near = (other for other in islice(known, _KNOWN) if abs(len(other) - len(name)) <= _LETTERS)
    compared = heapq.nlargest(_COMPARED, near, lambda other: len(pairs.intersection(pairwise(other))))
    return ", ".join(difflib.get_close_matches(name, compared, _SUGGESTED)) or None


def _of_classes(query: SearchQuery, snapshot: Snapshot, amounts: AmountsByClass) -> Iterator[Mistake]:
    wrong = [name for name in sorted(query.resource_classes)[:_NAMED] if amounts.stocks(name) is None]
    for number, name in enumerate(wrong):
        exists = name in snapshot.class_ids
        # In the place of one that exists, only one that some provider has is better.
        known = [other for other in snapshot.class_ids if not exists or (other != name and snapshot.column(other))]
        similar = _similar(name, known) if number < _MISSPELT else None
        text = f"No provider has inventory of {name}." if exists else f"There is no resource class {name}."
        yield Mistake("resource_class", text, similar)


def _of_traits(query: SearchQuery, snapshot: Snapshot, names: Names) -> Iterator[Mistake]:
    required = query.root_traits.names.union(*(group.traits.names for group in query.groups))
    for number, name in enumerate(sorted(name for name in required if not snapshot.with_trait(name))[:_NAMED]):
        exists = name not in names.unknown_traits
        known = [other for other in snapshot.traits if snapshot.with_trait(other)] if exists else names.traits
        similar = _similar(name, known) if number < _MISSPELT else None
        text = f"No provider has the trait {name}." if exists else f"There is no trait {name}."
        yield Mistake("trait", text, similar)


def _of_places(query: SearchQuery, snapshot: Snapshot) -> Iterator[Mistake]:
    """Yield the aggregates that no provider is in, and the trees that do not exist."""
    aggregates = frozenset().union(*(group.aggregates.names for group in query.groups))
    for name in islice(sorted(name for name in aggregates if not snapshot.in_aggregate(name)), _NAMED):
        yield Mistake("aggregate", f"No provider is in the aggregate {name}.")
    for uuid in islice(dict.fromkeys(group.in_tree for group in query.groups), _NAMED):
        if uuid is not None and uuid not in snapshot.by_uuid:
            yield Mistake("in_tree", f"There is no provider {uuid}.")


# --- amounts ---------------------------------------------------------------------------------------------------------


def _of_amounts(query: SearchQuery, amounts: AmountsByClass) -> Iterator[Mistake]:
    """Yield the demands that no provider could supply if nothing was used."""
    for group in query.groups[:_NAMED]:
        able: SlotSet | None = None
        for name, amount in group.resources.items():
            stocks = amounts.stocks(name)
            if stocks is None:
                able = None
                break
            most = int(stocks.ever.max())
            if amount > most:
                yield _too_much(group.suffix, name, amount, most)
                able = None
                break
            enough = SlotSet.sparse(stocks.slots[stocks.ever >= amount])
            able = enough if able is None else able & enough
        if able is not None and not able and group.suffix != UNSUFFIXED:
            words = write.text([write.resources(group.suffix, group.resources.items())])
            yield Mistake("amount", f"No single provider could ever give {words}.")


def _too_much(suffix: str, resource_class: str, amount: int, most: int) -> Mistake:
    words, enough = (write.text([write.resources(suffix, [(resource_class, number)])]) for number in (amount, most))
    text = f"No provider could ever give {words}: the most of {resource_class} that an inventory allows is {most:,}."
    return Mistake("amount", text, enough if most else None)


# --- subtrees --------------------------------------------------------------------------------------------------------


def _of_subtrees(query: SearchQuery, outcome: Outcome, searches: Searches) -> Iterator[Mistake]:
    trees = _Trees(query, outcome, searches.snapshot)
    for suffixes in islice(query.same_subtrees, _SUBTREES):
        if len(suffixes) > 1 and not trees.some_above(suffixes):
            words = f"same_subtree={','.join(sorted(suffixes))}"
            where = "any tree" if trees.all_looked_at else f"any of {_TREES} trees"
            text = (
                f"In {words} no provider of one group is at or above those of the others in {where}; "
                "a group without resources can stand for their common ancestor."
            )
            yield Mistake("same_subtree", text, _ancestor_group(query, suffixes, searches))


class _Trees:
    """The first trees that narrowing left, with the providers that fit each group there.

    Attributes:
        all_looked_at: Whether it left no others.
    """

    def __init__(self, query: SearchQuery, outcome: Outcome, snapshot: Snapshot) -> None:
        assert outcome.narrowed is not None
        self._snapshot = snapshot
        self._eligible = {
            group.suffix: eligible for group, eligible in zip(_demands(query), outcome.narrowed.eligible, strict=True)
        }
        self._roots = outcome.narrowed.roots.slots()[:_TREES].tolist()
        self.all_looked_at = outcome.narrowed.roots.count <= _TREES
        self._known: dict[str, list[_Fitting]] = {}

    @cached_property
    def _trees(self) -> list[SlotSet]:
        return [SlotSet.sparse(np.array(self._snapshot.forest.tree(root), np.intp)) for root in self._roots]

    def some_above(self, suffixes: frozenset[str]) -> bool:
        """Whether in some tree a provider that fits one group is at or above one for each of the others."""
        if self._roots and any(self._eligible[suffix].sharing for suffix in suffixes):
            return True
        return any(
            frozenset.intersection(*(one.above for one in fitting)) & frozenset().union(*(one.slots for one in fitting))
            for fitting in zip(*map(self._fitting, sorted(suffixes)), strict=True)
        )

    def _fitting(self, suffix: str) -> list[_Fitting]:
        """Return the providers of each tree that fit a group."""
        if suffix not in self._known:
            self._known[suffix] = [self._of_tree(suffix, tree) for tree in self._trees]
        return self._known[suffix]

    def _of_tree(self, suffix: str, tree: SlotSet) -> _Fitting:
        slots = (self._eligible[suffix].local & tree).slots().tolist()
        return _Fitting(frozenset(slots), frozenset(up for slot in slots for up in self._snapshot.ancestry(slot)))


class _Fitting(NamedTuple):
    """The providers of a tree that fit a group."""

    slots: frozenset[int]
    #: They and all that are above them.
    above: frozenset[int]


def _demands(query: SearchQuery) -> Iterator[Group]:
    """Yield the group of each demand."""
    for group in query.groups:
        yield from [group] * (len(group.resources) if group.suffix == UNSUFFIXED else 1)


def _ancestor_group(query: SearchQuery, suffixes: frozenset[str], searches: Searches) -> str | None:
    """Return the parameters of a group for the common ancestor, with which there are candidates; None if none helps."""
    relaxed = without(query, Condition("same_subtree", names=suffixes))
    if relaxed is None:
        return None
    snapshot = searches.snapshot
    traits: dict[str, int] = {}
    for candidate in searches.run(relaxed, _TREES).candidates:
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
    for trait in sorted(traits, key=lambda name: (-traits[name], snapshot.with_trait(name).count, name))[:_TRAITS]:
        group = Group(suffix, traits=NameCondition((frozenset({trait}),)))
        subtrees = tuple(one | {suffix} if one == suffixes else one for one in query.same_subtrees)
        changed = replace(query, groups=(*query.groups, group), same_subtrees=subtrees, isolate=query.isolate)
        if searches.run(changed, 1).found:
            subtree = ",".join(sorted(suffixes | {suffix}))
            return write.text([*write.group_pairs(group), ("same_subtree", subtree)])
    return None


def _unused_suffix(query: SearchQuery) -> str:
    taken = {group.suffix for group in query.groups}
    return next(name for name in ("_TOP", *(f"_TOP{number}" for number in range(len(taken) + 1))) if name not in taken)
