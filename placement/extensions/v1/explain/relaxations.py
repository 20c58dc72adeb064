"""The smallest changes of a query that give candidates: each is searched before it is offered (docs: v1-explain)."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from placement.extensions.v1 import query_text as write
from placement.extensions.v1.explain.conditions import (
    Condition,
    conditions,
    group_of,
    left_out,
    of_existing,
    parameter,
    spread,
    with_aggregate,
    with_amount,
    without,
)
from placement.extensions.v1.explain.explanation import Relaxation
from placement.extensions.v1.explain.searching import Outcome, Searches
from placement.extensions.v1.explain.units import AmountsByClass, Stocks, Units
from placement.index.slots import SlotSet
from placement.index.snapshot import SHARES
from placement.search.query.query import UNSUFFIXED, Group, SearchQuery

#: How many candidates are counted.
COUNTED = 100
#: How many conditions are tried, and how many changes are offered at most.
_TRIED, OFFERED = 40, 20
#: The size of a change that leaves out a class: more than that of leaving out another condition.
_RESOURCE = 1.5
#: The size of spreading an amount, for each group.
_SPREAD = 0.01
#: How many conditions are changed together at most; how many units of inventories, and how many other aggregates, are
#: tried.
_SEVERAL, _UNITS, _AGGREGATES = 3, 12, 3


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


class _Step(NamedTuple):
    """One way to change a condition of a query, which may give candidates."""

    condition: Condition
    text: str
    #: The part of the query that is changed.
    parameter: str
    query: SearchQuery
    #: What an amount was changed to; 0 for all else.
    amount: int = 0


class Relaxing:
    """Tries changes of one query that has no candidate."""

    def __init__(
        self,
        query: SearchQuery,
        outcome: Outcome,
        searches: Searches,
        amounts: AmountsByClass,
        unknown_traits: Collection[str] = (),
    ) -> None:
        """Begin with the query.

        Args:
            outcome: That of its search.
            unknown_traits: Those of the query that do not exist.
        """
        self._query = query
        self._outcome = outcome
        self._searches = searches
        self._amounts = amounts
        self._unknown = unknown_traits
        self._order = {condition: number for number, condition in enumerate(conditions(query))}
        #: Outcomes by what is searched for.
        self._known: dict[object, Outcome] = {}

    def changes(self) -> list[QueryChange]:
        """Return the changes of one condition that give candidates, or else those of a few, the smallest first.

        Whether all conditions were tried is recorded in ``searches.complete``.
        """
        promising = self._promising(self._query, self._outcome)
        changes = [change for condition in promising for change in self._of(condition)]
        # If some were not tried, one of them may be enough.
        if not changes and self._searches.complete:
            changes = self._of_several()
        different: dict[object, QueryChange] = {}
        for change in changes:
            different.setdefault(_interchangeable(change.query), change)
        return sorted(different.values(), key=lambda change: (change.size, [*map(self._order.get, change.conditions)]))

    # --- searching ---

    def _search(self, query: SearchQuery, among: SlotSet | None = None) -> Outcome:
        """Return the outcome of a search; queries in which equal groups have changed places have the same."""
        if among is not None:
            return self._searches.run(query, COUNTED, among)
        # Candidates name the groups by their suffixes.
        key = _interchangeable(query), frozenset(group.suffix for group in query.groups)
        if key not in self._known:
            self._known[key] = self._searches.run(query, COUNTED)
        return self._known[key]

    def _change(self, kind: str, step: _Step, size: float, outcome: Outcome) -> QueryChange:
        query = of_existing(step.query, self._unknown)
        return QueryChange((step.condition,), kind, (step.text,), (step.parameter,), query, size, outcome)

    def _promising(self, query: SearchQuery, outcome: Outcome) -> list[Condition]:
        """Return the conditions whose change could make a difference: they removed anything, or may combine."""
        narrowing = outcome.refusals.narrowing
        removed = {(one.rule, one.suffix) for one in narrowing if one.before.count != one.after.count}
        combined = bool(outcome.roots)
        promising = [one for one in conditions(query) if _may_matter(one, query, removed, combined)]
        self._searches.complete &= len(promising) <= _TRIED
        # Amounts take the most searches.
        first = sorted(promising, key=lambda one: one.kind == "amount")[:_TRIED]
        return [one for one in promising if one in first]

    def _original(self, condition: Condition) -> Condition:
        """Return the condition of the query that one of a changed query comes from: a subtree may have lost groups."""
        if condition.kind != "same_subtree":
            return condition
        return next(one for one in self._order if one.kind == condition.kind and condition.names <= one.names)

    # --- one condition ---

    def _of(self, condition: Condition) -> Iterator[QueryChange]:
        """Yield the changes of one condition that give candidates."""
        if condition.kind == "amount":
            yield from self._of_amount(condition)
            return
        step = self._without(self._query, condition)
        outcome = None if step is None else self._search(step.query)
        if step is None or outcome is None or not outcome.found:
            return
        if condition.kind == "aggregate" and not condition.forbidden:
            yield from self._of_other_aggregates(condition, self._searches.run(step.query, COUNTED))
        yield self._change(condition.kind, step, 1, outcome)

    def _without(self, query: SearchQuery, condition: Condition) -> _Step | None:
        relaxed, words = without(query, condition), left_out(condition, query)
        if condition.kind == "same_subtree":
            words = words.replace(parameter(condition, query), parameter(self._original(condition), self._query))
        return None if relaxed is None else _Step(condition, f"without {words}", words, relaxed)

    def _of_other_aggregates(self, condition: Condition, dropped: Outcome) -> Iterator[QueryChange]:
        """Yield the aggregates, of those that the candidates without the condition are in, that give some."""
        provider = self._searches.snapshot.provider
        suffix = condition.suffix or ""
        inside: Counter[str] = Counter()
        for candidate in dropped.candidates:
            used = candidate.mappings.get(suffix, ())
            roots = {provider(slot).root for slot in used} if suffix == UNSUFFIXED else set()
            inside.update(frozenset().union(*(provider(slot).aggregates for slot in {*used, *roots})))
        known = frozenset().union(*group_of(self._query, suffix).aggregates.any_of)
        others = sorted(inside.keys() - known, key=lambda name: (-inside[name], name))
        for aggregate in others[:_AGGREGATES]:
            query = with_aggregate(self._query, condition, aggregate)
            outcome = self._search(query)
            if outcome.found:
                text = "with " + write.text(write.member_of(suffix, (frozenset({aggregate}),), ()))
                step = _Step(condition, text, parameter(condition, self._query), query)
                yield self._change("aggregate", step, 1, outcome)

    def _of_amount(self, condition: Condition, among: SlotSet | None = None) -> Iterator[QueryChange]:
        """Yield the changes of an amount that give candidates.

        Args:
            among: The roots of the trees to look at; None for all.
        """
        dropped = self._without(self._query, condition)
        outcome = None if dropped is None else self._search(dropped.query, among)
        found = [*self._of_spreading(condition, among)]
        stocks, roots = self._reachable(condition, outcome, among)
        if stocks is not None:
            found += [*self._lower(self._query, condition, stocks, roots)]
            found += [*self._higher(condition, stocks, roots)]
        yield from found
        if not found and dropped is not None and outcome is not None and outcome.found:
            yield self._change("resource", dropped, _RESOURCE, outcome)

    def beyond(self, changes: Collection[QueryChange], taken: SlotSet) -> Iterator[QueryChange]:
        """Yield the smallest change of each amount that is enough for some tree that is not taken.

        Args:
            changes: Those of the amounts.
            taken: Roots.
        """
        among = self._searches.snapshot.forest.all_roots - taken
        for condition in dict.fromkeys(
            change.conditions[0] for change in changes if change.kind in ("amount", "spread")
        ):
            found = [*self._of_amount(condition, among)]
            if found:
                yield min(found, key=lambda change: change.size)

    def _of_spreading(self, condition: Condition, among: SlotSet | None) -> Iterator[QueryChange]:
        """Yield the least number of groups among which the amount is divided."""
        stocks = self._amounts.stocks(condition.resource_class)
        if stocks is None or not stocks.may_add_up(condition.amount, self._searches.snapshot):
            return
        for number, query in spread(self._query, condition):
            outcome = self._search(query, among)
            if outcome.found:
                words = parameter(condition, self._query)
                part = f"{condition.resource_class}:{condition.amount // number}"
                step = _Step(condition, f"with {words} as {number} groups of {part}", words, query)
                yield self._change("spread", step, number * _SPREAD, outcome)
                return

    def _reachable(
        self, condition: Condition, dropped: Outcome | None, among: SlotSet | None
    ) -> tuple[Stocks | None, SlotSet | None]:
        """Return the inventories of an amount's class that the rules before leave, and the roots of their trees.

        Args:
            dropped: The outcome of the search without the class; None if nothing else is requested.
            among: The roots of the trees to look at; None for all.
        """
        rule = f"resources:{condition.resource_class}", _narrowed_as(self._query)[condition.suffix or ""]
        narrowing = self._outcome.refusals.narrowing
        reachable = next((one.before for one in narrowing if (one.rule, one.suffix) == rule), None)
        stocks = self._amounts.stocks(condition.resource_class)
        if stocks is None or reachable is None:
            return None, None
        group, snapshot = group_of(self._query, condition.suffix or ""), self._searches.snapshot
        # Otherwise a provider that supplies the class may be the one with a trait that all need between them.
        if dropped is not None and dropped.narrowed is not None and (group.suffix or not group.traits.any_of):
            among = dropped.narrowed.roots.compact()
        if among is not None:
            reachable &= snapshot.forest.trees_of(among) | snapshot.with_trait(SHARES)
        return stocks.of(reachable.mask(snapshot.size)[stocks.slots]), among

    def _lower(
        self, query: SearchQuery, condition: Condition, stocks: Stocks, among: SlotSet | None
    ) -> Iterator[QueryChange]:
        """Yield the largest smaller amount that gives candidates.

        Of the amounts that some units allow, all up to a bound fit and none above it, but for those that other units
        allow, too: so bisection ends at such a bound or above it.
        """
        best: tuple[int, QueryChange] | None = None
        for number, units in enumerate(stocks.by_units(condition.amount - 1)):
            if best is not None and units.most <= best[0]:
                break
            if number == _UNITS:
                self._searches.complete = False
                break
            best = self._largest(query, condition, units, among, best)
        if best is not None:
            yield best[1]

    def _largest(
        self,
        query: SearchQuery,
        condition: Condition,
        units: Units,
        among: SlotSet | None,
        best: tuple[int, QueryChange] | None,
    ) -> tuple[int, QueryChange] | None:
        """Return the largest amount that some units allow and that gives candidates, or ``best`` if that is larger."""
        found = self._with_amount(query, condition, units.most, among)
        if found is not None:
            return units.most, found
        # Most often no amount fits then.
        least = self._with_amount(query, condition, units.least, among)
        if least is None:
            return best
        if best is None or units.least > best[0]:
            best = units.least, least
        # Where the class is asked for once, a bound is what some inventory has room for.
        alone = sum(condition.resource_class in group.resources for group in query.groups) == 1
        amounts = units.bounds if alone else range(units.least, units.most + 1, units.step)
        fits, beyond = bisect.bisect_right(amounts, best[0]) - 1, len(amounts) - 1
        guess = bisect.bisect_right(amounts, units.least + self._spare(condition, least)) - 1
        tried = [number for number in (guess, guess + 1) if fits < number < beyond]
        while beyond - fits > 1:
            middle = tried.pop(0) if tried else (fits + beyond) // 2
            found = self._with_amount(query, condition, amounts[middle], among)
            if found is None:
                beyond, tried = middle, []
            else:
                fits, best = middle, (amounts[middle], found)
        return best

    def _spare(self, condition: Condition, change: QueryChange) -> int:
        """Return how much more than in its candidates a provider of an amount could give."""
        name = condition.resource_class
        column = self._searches.snapshot.column(name)
        assert column is not None
        return max(
            column.amounts(slot).available - candidate.amounts[slot][name]
            for candidate in change.outcome.candidates
            for slot in candidate.mappings[condition.suffix or ""]
            if name in candidate.amounts.get(slot, ())
        )

    def _higher(self, condition: Condition, stocks: Stocks, among: SlotSet | None) -> Iterator[QueryChange]:
        """Yield the least larger amount that gives candidates, where units do not allow the one that is asked for."""
        for amount in stocks.above(condition.amount)[:_UNITS]:
            found = self._with_amount(self._query, condition, amount, among)
            if found is not None:
                yield found
                return

    def _with_amount(
        self, query: SearchQuery, condition: Condition, amount: int, among: SlotSet | None
    ) -> QueryChange | None:
        step = self._amount(query, condition, amount)
        outcome = self._search(step.query, among)
        return self._change("amount", step, _part(condition, amount), outcome) if outcome.found else None

    def _amount(self, query: SearchQuery, condition: Condition, amount: int) -> _Step:
        text = write.text([write.resources(condition.suffix or "", [(condition.resource_class, amount)])])
        words = parameter(self._stated(condition), self._query)
        return _Step(condition, f"with {text}", words, with_amount(query, condition, amount), amount)

    # --- several conditions ---

    def _of_several(self) -> list[QueryChange]:
        """Return the changes of two conditions that give candidates, or else those of three.

        Whatever gives candidates changes a condition that made a difference to each search before: only these are
        followed, as in a tree of hitting sets (Reiter, A Theory of Diagnosis from First Principles, 1987).
        """
        begun: list[_Tried] = [_Tried((), self._query, self._outcome)]
        for _ in range(_SEVERAL):
            found, begun = self._with_one_more(begun)
            if found:
                return found
        return []

    def _with_one_more(self, begun: list[_Tried]) -> tuple[list[QueryChange], list[_Tried]]:
        """Return the changes of one condition more that give candidates, and the others of them."""
        #: By the conditions that are changed: of several ways, the one that leaves out the fewest classes.
        found: dict[frozenset[Condition], _Tried] = {}
        following: list[_Tried] = []
        seen: set[object] = set()
        for before, condition in ((one, each) for one in begun for each in self._promising(one.query, one.outcome)):
            together = frozenset(self._original(step.condition) for step in before.steps) | {self._original(condition)}
            if len(together) == len(before.steps) or condition.avoided:
                continue
            for step in self._loosest(before.query, condition):
                steps = (*before.steps, step)
                key = frozenset((one.condition, one.amount) for one in steps)
                if key in seen or not self._searches.left:
                    continue
                seen.add(key)
                tried = _Tried(steps, step.query, self._search(step.query))
                if not tried.outcome.found:
                    following.append(tried)
                elif together not in found or tried.amounts > found[together].amounts:
                    found[together] = tried
        different = {_interchangeable(tried.query): tried for tried in reversed(found.values())}
        return [self._tightened(tried) for tried in different.values()], following

    def _loosest(self, query: SearchQuery, condition: Condition) -> Iterator[_Step]:
        """Yield the ways to change one more condition: to the smallest amounts, and without it."""
        if condition.kind == "amount":
            stocks = self._amounts.stocks(condition.resource_class)
            for least in () if stocks is None else stocks.smallest(_UNITS):
                yield self._amount(query, condition, least)
        step = self._without(query, condition)
        if step is not None:
            yield step

    def _tightened(self, tried: _Tried) -> QueryChange:
        """Return the change of several conditions in which each amount, in turn, is as large as it can be."""
        query, outcome = tried.query, tried.outcome
        # In the order of the query, whichever was changed first.
        steps = sorted(tried.steps, key=lambda step: self._order[self._original(step.condition)])
        texts = [step.text for step in steps]
        for place, step in enumerate(steps):
            stocks = self._amounts.stocks(step.condition.resource_class) if step.amount else None
            if stocks is None:
                continue
            among = None
            if outcome.narrowed is not None and stocks.uniform:
                # What has no room for the smallest amount has none for a larger one.
                among = outcome.narrowed.roots.compact()
                members = self._searches.snapshot.forest.trees_of(among) | self._searches.snapshot.with_trait(SHARES)
                stocks = stocks.of(members.mask(self._searches.snapshot.size)[stocks.slots])
            for raised in self._lower(query, self._stated(step.condition), stocks, among):
                query, outcome, texts[place] = raised.query, raised.outcome, raised.texts[0]
        changed = tuple(self._stated(self._original(step.condition)) for step in steps)
        words = tuple(step.parameter for step in steps)
        query = of_existing(query, self._unknown)
        return QueryChange(changed, "several", tuple(texts), words, query, len(steps), outcome)

    def _stated(self, condition: Condition) -> Condition:
        """Return the condition with its amount in the query."""
        if condition.kind != "amount":
            return condition
        amount = group_of(self._query, condition.suffix or "").resources[condition.resource_class]
        return replace(condition, amount=amount)


class _Tried(NamedTuple):
    """Some changes that were tried together."""

    steps: tuple[_Step, ...]
    query: SearchQuery
    outcome: Outcome

    @property
    def amounts(self) -> int:
        """How many amounts were changed, and not left out."""
        return sum(step.amount > 0 for step in self.steps)


def _joined(texts: Sequence[str]) -> str:
    """Return changes as one text: "with A and B and without C"."""
    parts = []
    for preposition in ("with ", "without "):
        changed = [text.removeprefix(preposition) for text in texts if text.startswith(preposition)]
        if changed:
            parts.append(preposition + " and ".join(changed))
    return " and ".join(parts)


def _part(condition: Condition, amount: int) -> float:
    """Return how much of the greater amount the change of one is."""
    return abs(amount - condition.amount) / max(amount, condition.amount)


def _narrowed_as(query: SearchQuery) -> dict[str, str]:
    """Return, for each suffix, that of the first group which is equal: the one whose rules are recorded."""
    first: dict[object, str] = {}
    return {
        group.suffix: group.suffix if group.suffix == UNSUFFIXED else first.setdefault(_rules(group), group.suffix)
        for group in query.groups
    }


def _rules(group: Group) -> object:
    return frozenset(group.resources.items()), group.traits, group.aggregates, group.in_tree


def _may_matter(
    condition: Condition, query: SearchQuery, removed: Collection[tuple[str, str | None]], combined: bool
) -> bool:
    """Whether a search can go another way without a condition, with another amount, or after more such changes.

    Args:
        removed: The rules that removed anything, each with its suffix.
        combined: Whether some trees were left to combine.
    """
    narrowed_as = _narrowed_as(query)
    suffixes = {suffix for _, suffix in removed}
    match condition.kind:
        case "group_policy":
            return combined
        case "same_subtree":
            # Groups without resources go with it.
            return combined or not suffixes.isdisjoint(narrowed_as[suffix] for suffix in condition.names)
        case "root_required":
            return ("root_required", None) in removed
        case "amount":
            # With its last amount a group goes, whatever else it requires.
            return combined or narrowed_as[condition.suffix or ""] in suffixes
        case "trait" | "aggregate" if condition.suffix == UNSUFFIXED:
            # These also decide which sharing providers help, and which providers combine.
            return True
        case kind:
            if combined and not group_of(query, condition.suffix or "").resources:
                # With its last condition a group without resources goes.
                return True
            rule = {"trait": "required", "aggregate": "member_of"}.get(kind, kind)
            return (rule, narrowed_as[condition.suffix or ""]) in removed


def _interchangeable(query: SearchQuery) -> object:
    """Return a value that is equal for queries that differ in the suffixes of groups that no same_subtree names."""
    named = frozenset().union(*query.same_subtrees, {UNSUFFIXED})
    groups = Counter((_rules(group), group.suffix if group.suffix in named else None) for group in query.groups)
    return frozenset(groups.items()), query.isolate, query.same_subtrees, query.root_traits, query.avoided
