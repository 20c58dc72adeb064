"""Changed versions of a query that has no candidate, each searched once; and which changes can make a difference."""

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
    described,
    group_of,
    with_changes,
)
from placement.extensions.v1.explain.explanation import Relaxation
from placement.extensions.v1.explain.recorded_search import BudgetedSearches, Outcome
from placement.index.slots import SlotSet
from placement.search.query.query import UNSUFFIXED, Group, SearchQuery

#: How many candidates are counted.
COUNTED = 100
#: The most conditions that are tried.
_TRIED = 40


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A change of some conditions with which there are candidates."""

    conditions: tuple[Condition, ...]
    #: That of ``explanation.Relaxation``.
    kind: str
    #: Of each condition: "without required=HW_X", "with resources=VCPU:4".
    texts: tuple[str, ...]
    #: The parts of the query that are changed.
    parameters: tuple[str, ...]
    query: SearchQuery
    size: float
    outcome: Outcome

    @property
    def relaxation(self) -> Relaxation:
        """The change as it is shown."""
        found = min(self.outcome.found, self.query.limit or COUNTED)
        limited = found == self.query.limit or self.outcome.limited or not self.outcome.complete
        words = "&".join(dict.fromkeys(self.parameters))
        return Relaxation(self.kind, _joined(self.texts), words, self.query, found, limited, self.size)


class Tried(NamedTuple):
    """A changed query and what a search for it found."""

    changes: Changes
    query: SearchQuery
    outcome: Outcome


class Variations:
    """Searches for changed versions of one query.

    Attributes:
        query: The query itself.
        outcome: That of its search.
        searches: What the variations are searched with.
        unknown_traits: Those of the query that do not exist.
    """

    def __init__(
        self, query: SearchQuery, outcome: Outcome, searches: BudgetedSearches, unknown_traits: Collection[str]
    ) -> None:
        """Begin with the query."""
        self.query = query
        self.outcome = outcome
        self.searches = searches
        self.unknown_traits = unknown_traits
        self._order = {condition: number for number, condition in enumerate(conditions(query))}
        #: Outcomes by what is searched for.
        self._known: dict[object, Outcome] = {}

    def places(self, changed: Collection[Condition]) -> list[int]:
        """Return the places of conditions in the query, ascending."""
        return sorted(self._order[one] for one in changed)

    def ordered(self, changed: Collection[Condition]) -> list[Condition]:
        """Return conditions in the order of the query."""
        return sorted(changed, key=self._order.__getitem__)

    def search(self, query: SearchQuery, among: SlotSet | None = None) -> Outcome:
        """Return the outcome of a search; queries in which equal groups have changed places have the same.

        Args:
            among: The roots of the trees to look at; None for all.
        """
        if among is not None:
            return self.searches.run(query, COUNTED, among)
        # Candidates name the groups by their suffixes.
        key = interchangeable(query), frozenset(group.suffix for group in query.groups)
        if key not in self._known:
            self._known[key] = self.searches.run(query, COUNTED)
        return self._known[key]

    def tried(self, changes: Changes, among: SlotSet | None = None) -> Tried | None:
        """Return the outcome of the query with these changes; None if it would request nothing."""
        query = with_changes(self.query, changes, self.unknown_traits)
        return None if query is None else Tried(changes, query, self.search(query, among))

    def existing(self, query: SearchQuery) -> SearchQuery:
        """Return a query without the traits that do not exist, if it can do without: what is searched can be sent."""
        return with_changes(query, {}, self.unknown_traits) or query

    def change(self, kind: str, tried: Tried, size: float) -> QueryChange:
        """Return a change that was tried, as it is shown."""
        changes = {one: tried.changes[one] for one in self.ordered(tried.changes)}
        texts, words = zip(*described(self.query, changes, self.unknown_traits), strict=True)
        return QueryChange(tuple(changes), kind, texts, words, tried.query, size, tried.outcome)

    def promising(self, tried: Tried) -> list[Condition]:
        """Return the conditions whose change could make a difference after those that were changed.

        Their rules removed something in the search, or trees were left to combine.
        """
        narrowing = tried.outcome.refusals.narrowing
        removed = {(one.rule, one.suffix) for one in narrowing if one.before.count != one.after.count}
        combined = bool(tried.outcome.roots)
        promising = [
            one
            for one in self._order
            if one not in tried.changes and _may_matter(one, tried.query, removed, combined=combined)
        ]
        self.searches.complete &= len(promising) <= _TRIED
        # Amounts take the most searches.
        return self.ordered(sorted(promising, key=lambda one: one.kind == "amount")[:_TRIED])


def _joined(texts: Sequence[str]) -> str:
    """Return changes as one text: "with A and B, without C"."""
    parts = []
    for preposition in ("with ", "without "):
        changed = [text.removeprefix(preposition) for text in texts if text.startswith(preposition)]
        if changed:
            parts.append(preposition + " and ".join(changed))
    return ", ".join(parts)


def narrowed_as(query: SearchQuery) -> dict[str, str]:
    """Return, for each suffix, that of the first group which is equal: the one whose rules are recorded."""
    first: dict[object, str] = {}
    return {
        group.suffix: group.suffix if group.suffix == UNSUFFIXED else first.setdefault(_rules(group), group.suffix)
        for group in query.groups
    }


def _rules(group: Group) -> object:
    return frozenset(group.resources.items()), group.traits, group.aggregates, group.in_tree


def interchangeable(query: SearchQuery, beside: Mapping[str, object] = MappingProxyType({})) -> object:
    """Return a value that is equal for queries that differ only in suffixes that no same_subtree names.

    Args:
        beside: For each suffix, what else has to be equal.
    """
    subtrees = frozenset(names for names in query.same_subtrees if len(names) > 1)
    named = frozenset().union(*subtrees, {UNSUFFIXED})
    groups = Counter(
        (_rules(group), group.suffix if group.suffix in named else None, beside.get(group.suffix))
        for group in query.groups
    )
    return frozenset(groups.items()), query.isolate, subtrees, query.root_traits, query.avoided


def _may_matter(
    condition: Condition, query: SearchQuery, removed: Collection[tuple[str, str | None]], *, combined: bool
) -> bool:
    """Whether changing a condition, alone or with others, can change what a search finds.

    Args:
        removed: The rules that removed anything, each with its suffix.
        combined: Whether some trees were left to combine.
    """
    first = narrowed_as(query)
    narrowing = {suffix for _, suffix in removed}
    if condition.kind == "group_policy":
        return combined and query.isolate
    if condition.kind == "root_required":
        return ("root_required", None) in removed
    concerned = frozenset({condition.suffix or ""}) if condition.suffix is not None else condition.names
    concerned &= first.keys()
    if not concerned:
        return False
    # A group is removed with its last amount or condition, whatever else it requires, and so are groups tied to it.
    may_go = condition.kind in ("amount", "same_subtree") or not all(
        group_of(query, suffix).resources for suffix in concerned
    )
    if may_go:
        return combined or any(first[suffix] in narrowing for suffix in _tied(query, concerned))
    if condition.suffix == UNSUFFIXED and condition.kind in ("trait", "aggregate"):
        # These also decide which sharing providers help, and which providers combine.
        return True
    rule = {"trait": "required", "aggregate": "member_of"}.get(condition.kind, condition.kind)
    return (rule, first[condition.suffix or ""]) in removed


def _tied(query: SearchQuery, suffixes: frozenset[str]) -> frozenset[str]:
    """Return the suffixes and those that a same_subtree ties to them, directly or through others."""
    found = suffixes.union(*(names for names in query.same_subtrees if names & suffixes))
    return found if found == suffixes else _tied(query, found)
