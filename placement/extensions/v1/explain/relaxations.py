"""The smallest changes of a query that give candidates: each is searched before it is offered (docs: v1-explain)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from placement.extensions.v1 import query_text as write
from placement.extensions.v1.explain.amount_search import AmountSearch
from placement.extensions.v1.explain.class_inventories import InventoriesByClass
from placement.extensions.v1.explain.combined_changes import combined_changes
from placement.extensions.v1.explain.conditions import (
    Condition,
    group_of,
    parameter,
    spread,
    with_aggregate,
)
from placement.extensions.v1.explain.recorded_search import Outcome
from placement.extensions.v1.explain.variations import QueryChange, Tried, Variations, interchangeable
from placement.index.slots import SlotSet
from placement.search.query.query import UNSUFFIXED, SearchQuery

#: The most changes that are offered.
OFFERED = 20
#: The size of leaving out a class: more than that of leaving out another condition.
_RESOURCE = 1.5
#: The size of spreading an amount, for each group.
_SPREAD = 0.01
#: How many other aggregates are tried.
_AGGREGATES = 3


class RelaxationSearch:
    """Tries changes of one query that has no candidate."""

    def __init__(self, variations: Variations, amounts: InventoriesByClass) -> None:
        """Begin with the query."""
        self._variations = variations
        self._query = variations.query
        self._searches = variations.searches
        self._lowering = AmountSearch(variations, amounts)

    def changes(self) -> list[QueryChange]:
        """Return the changes of one condition that give candidates, or else of two or three, the smallest first.

        Whether all conditions were tried is recorded in ``searches.complete``.
        """
        promising = self._variations.promising(Tried({}, self._query, self._variations.outcome))
        changes = [change for condition in promising for change in self._of(condition)]
        # If some were not tried, one of them may be enough.
        if not changes and self._searches.complete:
            changes = combined_changes(self._variations, self._lowering)
        different: dict[object, QueryChange] = {}
        for change in changes:
            different.setdefault(interchangeable(change.query), change)
        places = self._variations.places
        return sorted(different.values(), key=lambda change: (change.size, places(change.conditions)))

    def _of(self, condition: Condition) -> Iterator[QueryChange]:
        """Yield the changes of one condition that give candidates."""
        if condition.kind == "amount":
            yield from self._of_amount(condition)
            return
        dropped = self._variations.tried({condition: 0})
        if dropped is None or not dropped.outcome.found:
            return
        if condition.kind == "aggregate" and not condition.forbidden:
            yield from self._of_other_aggregates(condition, dropped.outcome)
        # To have a host enabled changes nothing in the request.
        yield self._variations.change(condition.kind, dropped, 0 if condition.avoided else 1)

    def _with(
        self, condition: Condition, kind: str, text: str, query: SearchQuery, size: float, outcome: Outcome
    ) -> QueryChange:
        words = parameter(condition, self._query)
        return QueryChange((condition,), kind, (f"with {text}",), (words,), query, size, outcome)

    def _of_other_aggregates(self, condition: Condition, dropped: Outcome) -> Iterator[QueryChange]:
        """Yield changes to other aggregates: those of the candidates without the condition that give some."""
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
            query = self._variations.existing(with_aggregate(self._query, condition, aggregate))
            outcome = self._variations.search(query)
            if outcome.found:
                text = write.text(write.member_of(suffix, (frozenset({aggregate}),), ()))
                yield self._with(condition, "aggregate", text, query, 1, outcome)

    def _of_amount(self, condition: Condition, among: SlotSet | None = None) -> Iterator[QueryChange]:
        """Yield the changes of an amount that give candidates.

        Args:
            among: The roots of the trees to look at; None for all.
        """
        dropped = self._variations.tried({condition: 0}, among)
        if dropped is not None and not dropped.outcome.found and self._lowering.is_looser_without(condition):
            return
        roots = self._lowering.roots(condition, dropped, among)
        found = [*self._of_spreading(condition, roots)]
        stocks = self._lowering.reachable(condition, roots)
        if stocks is not None:
            lower = self._lowering.largest({}, condition, stocks, roots)
            higher = self._lowering.higher(condition, stocks, roots)
            found += [
                self._variations.change("amount", tried, _part(condition, tried.changes[condition]))
                for tried in (lower, higher)
                if tried is not None
            ]
        yield from found
        if not found and dropped is not None and dropped.outcome.found:
            yield self._variations.change("resource", dropped, _RESOURCE)

    def _of_spreading(self, condition: Condition, among: SlotSet | None) -> Iterator[QueryChange]:
        """Yield the change that divides the amount among the fewest groups that give candidates."""
        stocks = self._lowering.stocks(condition)
        if stocks is None or not stocks.may_add_up(condition.amount, self._searches.snapshot, among):
            return
        for number, changed in spread(self._query, condition):
            query = self._variations.existing(changed)
            outcome = self._variations.search(query, among)
            if outcome.found:
                part = f"{condition.resource_class}:{condition.amount // number}"
                text = f"{parameter(condition, self._query)} as {number} groups of {part}"
                yield self._with(condition, "spread", text, query, number * _SPREAD, outcome)
                return

    def beyond(self, changes: Collection[QueryChange], taken: SlotSet) -> Iterator[QueryChange]:
        """Yield the smallest change of each amount that is enough for some tree that is not taken.

        Args:
            changes: Those that were found for other trees.
            taken: Roots.
        """
        among = self._searches.snapshot.forest.all_roots - taken
        for condition in dict.fromkeys(
            change.conditions[0] for change in changes if change.kind in ("amount", "spread")
        ):
            found = [*self._of_amount(condition, among)]
            if found:
                yield min(found, key=lambda change: change.size)


def _part(condition: Condition, amount: int) -> float:
    """Return the change of an amount as a part of the greater one."""
    return abs(amount - condition.amount) / max(amount, condition.amount)
