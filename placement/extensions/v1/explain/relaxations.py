"""The smallest changes of a query that produce candidates, each verified by a search (docs: v1-explain)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from placement.extensions.v1 import query_text
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
from placement.extensions.v1.explain.variations import QueryChange, Variation, Variations, equivalence_key
from placement.index.slots import SlotSet
from placement.search.query.query import UNSUFFIXED, SearchQuery

#: Maximum number of changes offered.
MAX_RELAXATIONS = 20
#: Size of dropping a class: more than the size of dropping another condition.
_SIZE_OF_DROPPED_CLASS = 1.5
#: Size of spreading an amount, per group.
_SIZE_PER_GROUP = 0.01
#: Maximum number of other aggregates tried per condition.
_MAX_OTHER_AGGREGATES = 3


class RelaxationSearch:
    """A search for the smallest changes of a query without candidates."""

    def __init__(self, variations: Variations, amounts: InventoriesByClass) -> None:
        self._variations = variations
        self._query = variations.query
        self._searches = variations.searches
        self._amount_search = AmountSearch(variations, amounts)

    def changes(self) -> list[QueryChange]:
        """Return the changes of one condition that produce candidates, or else of two or three; the smallest first.

        ``searches.complete`` records whether all conditions were tried.
        """
        promising = self._variations.promising_conditions(Variation({}, self._query, self._variations.outcome))
        changes = [change for condition in promising for change in self._changes_of(condition)]
        # If the budget ran out, an untried change of a single condition may be enough.
        if not changes and self._searches.complete:
            changes = combined_changes(self._variations, self._amount_search)
        distinct: dict[object, QueryChange] = {}
        for change in changes:
            distinct.setdefault(equivalence_key(change.query), change)
        positions = self._variations.positions
        return sorted(distinct.values(), key=lambda change: (change.size, positions(change.conditions)))

    def _changes_of(self, condition: Condition) -> Iterator[QueryChange]:
        """Yield the changes of one condition that produce candidates."""
        if condition.kind == "amount":
            yield from self._of_amount(condition)
            return
        dropped = self._variations.variation({condition: 0})
        if dropped is None or not dropped.outcome.candidates:
            return
        if condition.kind == "aggregate" and not condition.forbidden:
            yield from self._of_other_aggregates(condition, dropped.outcome)
        # Enabling an avoided host leaves the request unchanged, so this change has size 0.
        yield self._variations.change(condition.kind, dropped, 0 if condition.avoided else 1)

    def _change_to(
        self, condition: Condition, kind: str, text: str, query: SearchQuery, size: float, outcome: Outcome
    ) -> QueryChange:
        part = parameter(condition, self._query)
        return QueryChange((condition,), kind, (f"with {text}",), (part,), query, size, outcome)

    def _of_other_aggregates(self, condition: Condition, dropped: Outcome) -> Iterator[QueryChange]:
        """Yield changes to aggregates of the candidates without the condition, if they produce candidates."""
        provider = self._searches.snapshot.provider
        suffix = condition.suffix or ""
        counts: Counter[str] = Counter()
        for candidate in dropped.candidates:
            used = candidate.mappings.get(suffix, ())
            roots = {provider(slot).root for slot in used} if suffix == UNSUFFIXED else set()
            counts.update(frozenset().union(*(provider(slot).aggregates for slot in {*used, *roots})))
        required = frozenset().union(*group_of(self._query, suffix).aggregates.any_of)
        alternatives = sorted(counts.keys() - required, key=lambda name: (-counts[name], name))
        for aggregate in alternatives[:_MAX_OTHER_AGGREGATES]:
            query = self._variations.without_unknown_traits(with_aggregate(self._query, condition, aggregate))
            outcome = self._variations.search(query)
            if outcome.candidates:
                text = query_text.text(query_text.member_of(suffix, (frozenset({aggregate}),), ()))
                yield self._change_to(condition, "aggregate", text, query, 1, outcome)

    def _of_amount(self, condition: Condition, tree_roots: SlotSet | None = None) -> Iterator[QueryChange]:
        """Yield the changes of an amount that produce candidates.

        Args:
            tree_roots: Roots of the trees to search; None for all.
        """
        dropped = self._variations.variation({condition: 0}, tree_roots)
        if (
            dropped is not None
            and not dropped.outcome.candidates
            and self._amount_search.dropping_is_loosest(condition)
        ):
            return
        roots = self._amount_search.roots(condition, dropped, tree_roots)
        changes = [*self._of_spreading(condition, roots)]
        inventories = self._amount_search.reachable_inventories(condition, roots)
        if inventories is not None:
            lower = self._amount_search.search_largest({}, condition, inventories, roots)
            higher = self._amount_search.search_higher(condition, inventories, roots)
            changes += [
                self._variations.change("amount", variation, _relative_change(condition, variation.changes[condition]))
                for variation in (lower, higher)
                if variation is not None
            ]
        yield from changes
        if not changes and dropped is not None and dropped.outcome.candidates:
            yield self._variations.change("resource", dropped, _SIZE_OF_DROPPED_CLASS)

    def _of_spreading(self, condition: Condition, tree_roots: SlotSet | None) -> Iterator[QueryChange]:
        """Yield the change that divides the amount among the smallest number of groups that produces candidates."""
        inventories = self._amount_search.inventories(condition)
        if inventories is None or not inventories.may_add_up(condition.amount, self._searches.snapshot, tree_roots):
            return
        for number, changed in spread(self._query, condition):
            query = self._variations.without_unknown_traits(changed)
            outcome = self._variations.search(query, tree_roots)
            if outcome.candidates:
                part = f"{condition.resource_class}:{condition.amount // number}"
                text = f"{parameter(condition, self._query)} as {number} groups of {part}"
                yield self._change_to(condition, "spread", text, query, number * _SIZE_PER_GROUP, outcome)
                return

    def in_other_trees(self, changes: Collection[QueryChange], excluded: SlotSet) -> Iterator[QueryChange]:
        """Yield the smallest change of each amount that is enough for a tree outside ``excluded``.

        Args:
            changes: The changes that are enough for the excluded trees.
            excluded: Roots of trees.
        """
        tree_roots = self._searches.snapshot.forest.all_roots - excluded
        for condition in dict.fromkeys(
            change.conditions[0] for change in changes if change.kind in ("amount", "spread")
        ):
            changes_of_amount = [*self._of_amount(condition, tree_roots)]
            if changes_of_amount:
                yield min(changes_of_amount, key=lambda change: change.size)


def _relative_change(condition: Condition, amount: int) -> float:
    """Return the relative change of an amount: the difference divided by the larger amount."""
    return abs(amount - condition.amount) / max(amount, condition.amount)
