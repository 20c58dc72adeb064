"""Variations of a query without candidates: changed queries with the outcomes of their searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from placement.extensions.v1.explain.conditions import (
    Changes,
    Condition,
    conditions,
    describe,
    group_of,
    with_changes,
)
from placement.extensions.v1.explain.explanation import Relaxation
from placement.extensions.v1.explain.recorded_search import BudgetedSearches, Outcome
from placement.index.slots import SlotSet
from placement.search.query.query import UNSUFFIXED, Group, SearchQuery

#: Maximum number of candidates counted per variation.
MAX_CANDIDATES = 100
#: Maximum number of conditions tried after a search.
_MAX_TRIED = 40


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A change of one or more conditions that produces candidates."""

    conditions: tuple[Condition, ...]
    #: The kind of the relaxation (``explanation.Relaxation``).
    kind: str
    #: The text of each condition: "without required=HW_X", "with resources=VCPU:4".
    texts: tuple[str, ...]
    #: The parts of the query that change.
    parameters: tuple[str, ...]
    query: SearchQuery
    size: float
    outcome: Outcome

    @property
    def relaxation(self) -> Relaxation:
        """The change as shown to users."""
        count = min(len(self.outcome.candidates), self.query.limit or MAX_CANDIDATES)
        limited = count == self.query.limit or self.outcome.limited or not self.outcome.complete
        parameters = "&".join(dict.fromkeys(self.parameters))
        return Relaxation(self.kind, _join(self.texts), parameters, self.query, count, limited, self.size)


class Variation(NamedTuple):
    """A changed query and the outcome of its search."""

    changes: Changes
    query: SearchQuery
    outcome: Outcome


class Variations:
    """The variations of one query.

    Attributes:
        query: The original query.
        outcome: The outcome of its search.
        searches: The budget and the searches of all variations.
        unknown_traits: The traits in the query that do not exist.
    """

    def __init__(
        self, query: SearchQuery, outcome: Outcome, searches: BudgetedSearches, unknown_traits: Collection[str]
    ) -> None:
        self.query = query
        self.outcome = outcome
        self.searches = searches
        self.unknown_traits = unknown_traits
        self._order = {condition: number for number, condition in enumerate(conditions(query))}
        #: Outcomes of searches of all trees; interchangeable queries share a key.
        self._outcomes: dict[object, Outcome] = {}

    def positions(self, changed: Collection[Condition]) -> list[int]:
        """Return the positions of conditions in the query, ascending."""
        return sorted(self._order[condition] for condition in changed)

    def in_query_order(self, changed: Collection[Condition]) -> list[Condition]:
        """Return conditions in query order."""
        return sorted(changed, key=self._order.__getitem__)

    def search(self, query: SearchQuery, tree_roots: SlotSet | None = None) -> Outcome:
        """Return the outcome of a search.

        Searches of all trees are cached: queries that differ only in the order of equal groups share an outcome.

        Args:
            tree_roots: Roots of the trees to search; None for all.
        """
        if tree_roots is not None:
            return self.searches.run(query, MAX_CANDIDATES, tree_roots)
        # Candidates refer to groups by suffix.
        key = equivalence_key(query), frozenset(group.suffix for group in query.groups)
        if key not in self._outcomes:
            self._outcomes[key] = self.searches.run(query, MAX_CANDIDATES)
        return self._outcomes[key]

    def variation(self, changes: Changes, tree_roots: SlotSet | None = None) -> Variation | None:
        """Return the changed query with the outcome of its search; None if it would request nothing."""
        query = with_changes(self.query, changes, self.unknown_traits)
        return None if query is None else Variation(changes, query, self.search(query, tree_roots))

    def without_unknown_traits(self, query: SearchQuery) -> SearchQuery:
        """Return a query without the unknown traits that it does not depend on, because they would be refused."""
        return with_changes(query, {}, self.unknown_traits) or query

    def change(self, kind: str, variation: Variation, size: float) -> QueryChange:
        """Return the change of a variation, with its texts."""
        changes = {condition: variation.changes[condition] for condition in self.in_query_order(variation.changes)}
        texts, parts = zip(*describe(self.query, changes, self.unknown_traits), strict=True)
        return QueryChange(tuple(changes), kind, texts, parts, variation.query, size, variation.outcome)

    def promising_conditions(self, variation: Variation) -> list[Condition]:
        """Return the conditions whose change could make a difference in addition to the changes of a variation.

        Either their rules removed something in its search, or trees were left to combine.
        """
        narrowing = variation.outcome.refusals.narrowing
        removed = {(step.rule, step.suffix) for step in narrowing if step.before.count != step.after.count}
        combined = bool(variation.outcome.roots)
        promising = [
            condition
            for condition in self._order
            if condition not in variation.changes
            and _may_matter(condition, variation.query, removed, combined=combined)
        ]
        self.searches.complete &= len(promising) <= _MAX_TRIED
        # Amounts take the most searches, so they come last.
        return self.in_query_order(sorted(promising, key=lambda condition: condition.kind == "amount")[:_MAX_TRIED])


def _join(texts: Sequence[str]) -> str:
    """Return change texts joined into one: "with A and B, without C"."""
    parts = []
    for preposition in ("with ", "without "):
        changed = [text.removeprefix(preposition) for text in texts if text.startswith(preposition)]
        if changed:
            parts.append(preposition + " and ".join(changed))
    return ", ".join(parts)


def recorded_suffixes(query: SearchQuery) -> dict[str, str]:
    """Return, for each suffix, the suffix of the first equal group, under which narrowing records the rules."""
    recorded: dict[object, str] = {}
    return {
        group.suffix: group.suffix if group.suffix == UNSUFFIXED else recorded.setdefault(_rules(group), group.suffix)
        for group in query.groups
    }


def _rules(group: Group) -> object:
    return frozenset(group.resources.items()), group.traits, group.aggregates, group.in_tree


def equivalence_key(query: SearchQuery, extra: Mapping[str, object] = MappingProxyType({})) -> object:
    """Return a key shared by queries that differ only in suffixes outside of every same_subtree.

    Args:
        extra: Further values by suffix that must also be equal.
    """
    subtrees = frozenset(names for names in query.same_subtrees if len(names) > 1)
    named = frozenset().union(*subtrees, {UNSUFFIXED})
    groups = Counter(
        (_rules(group), group.suffix if group.suffix in named else None, extra.get(group.suffix))
        for group in query.groups
    )
    return frozenset(groups.items()), query.isolate, subtrees, query.root_traits, query.avoided


def _may_matter(
    condition: Condition, query: SearchQuery, removed: Collection[tuple[str, str | None]], *, combined: bool
) -> bool:
    """Whether changing a condition, alone or with others, can change the outcome of a search.

    Args:
        removed: The rules that removed providers or trees, each with its suffix.
        combined: Whether trees were left to combine.
    """
    recorded = recorded_suffixes(query)
    narrowing = {suffix for _, suffix in removed}
    if condition.kind == "group_policy":
        return combined and query.isolate
    if condition.kind == "root_required":
        return ("root_required", None) in removed
    suffixes = frozenset({condition.suffix or ""}) if condition.suffix is not None else condition.names
    suffixes &= recorded.keys()
    if not suffixes:
        return False
    # A group is removed with its last amount or condition, even if other rules remain, and so are groups tied to it.
    may_be_removed = condition.kind in ("amount", "same_subtree") or not all(
        group_of(query, suffix).resources for suffix in suffixes
    )
    if may_be_removed:
        return combined or any(recorded[suffix] in narrowing for suffix in _tied_suffixes(query, suffixes))
    if condition.suffix == UNSUFFIXED and condition.kind in ("trait", "aggregate"):
        # These conditions also decide which sharing providers and which combinations are usable.
        return True
    rule = {"trait": "required", "aggregate": "member_of"}.get(condition.kind, condition.kind)
    return (rule, recorded[condition.suffix or ""]) in removed


def _tied_suffixes(query: SearchQuery, suffixes: frozenset[str]) -> frozenset[str]:
    """Return the suffixes and all suffixes that a same_subtree connects to them, directly or indirectly."""
    tied = suffixes.union(*(names for names in query.same_subtrees if names & suffixes))
    return tied if tied == suffixes else _tied_suffixes(query, tied)
