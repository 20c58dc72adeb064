"""Changes of two or three conditions together that produce candidates (docs: v1-explain)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from placement.extensions.v1.explain.amount_search import AmountSearch
from placement.extensions.v1.explain.conditions import Condition
from placement.extensions.v1.explain.variations import QueryChange, Variation, Variations, equivalence_key

#: Maximum number of conditions changed together.
_MAX_CONDITIONS = 3


def combined_changes(variations: Variations, amount_search: AmountSearch) -> list[QueryChange]:
    """Return the changes of two conditions that produce candidates, or else of three; one must not be enough.

    Only a condition that made a difference to a failed search can help, so only such conditions are added.  This is a
    hitting-set tree (Reiter, A Theory of Diagnosis from First Principles, 1987).
    """
    enumeration = _ConditionSets(variations, amount_search)
    failed = [Variation({}, variations.query, variations.outcome)]
    for _ in range(_MAX_CONDITIONS):
        successful, failed = enumeration.extend(failed)
        if successful:
            # Of changes that become equal once raised, the first in query order is offered.
            successful.sort(key=lambda variation: variations.positions(variation.changes), reverse=True)
            distinct = {equivalence_key(variation.query, _bounds(variation)): variation for variation in successful}
            return [enumeration.raise_amounts(variation) for variation in distinct.values()]
    return []


class _ConditionSets:
    """An enumeration of sets of conditions, each one condition larger than a set that failed."""

    def __init__(self, variations: Variations, amount_search: AmountSearch) -> None:
        self._variations = variations
        self._amount_search = amount_search

    def extend(self, failed: Iterable[Variation]) -> tuple[list[Variation], list[Variation]]:
        """Return the changes with one more condition that produce candidates, and the changes that do not."""
        successful: list[Variation] = []
        still_failed: list[Variation] = []
        # No query can make the service use a host that it avoids, so these conditions are never offered.
        sets = dict.fromkeys(
            frozenset({*before.changes, condition})
            for before in failed
            for condition in self._variations.promising_conditions(before)
            if not condition.avoided
        )
        for conditions in sets:
            if not self._variations.searches.has_operations:
                break
            loosest = [*self._loosest_changes(conditions)]
            if any(variation.outcome.candidates for variation in loosest):
                variations = (*self._lowering_changes(conditions), *loosest)
                successful.append(next(variation for variation in variations if variation.outcome.candidates))
            else:
                still_failed += loosest
        return successful, still_failed

    def _loosest_changes(self, conditions: frozenset[Condition]) -> Iterator[Variation]:
        """Yield the loosest changes of conditions: if any change produces candidates, one of these does."""
        dropped = self._variations.variation(dict.fromkeys(conditions, 0))
        if dropped is not None and all(map(self._amount_search.dropping_is_loosest, conditions)):
            yield dropped
        else:
            yield from self._lowering_changes(conditions)

    def _lowering_changes(self, conditions: frozenset[Condition]) -> Iterator[Variation]:
        """Yield the changes of conditions that lower amounts as far as possible.

        Changes that drop fewer classes come first.  Of changes that drop the same number, changes that keep the
        earlier classes come first.
        """
        amounts = [condition for condition in self._variations.in_query_order(conditions) if condition.kind == "amount"]
        for number in range(len(amounts) + 1):
            for dropped in itertools.combinations(reversed(amounts), number):
                lowered = [condition for condition in amounts if condition not in dropped]
                for new_amounts in itertools.product(*map(self._amount_search.smallest_amounts, lowered)):
                    changes = dict.fromkeys(conditions, 0) | dict(zip(lowered, new_amounts, strict=True))
                    variation = self._variations.variation(changes)
                    if variation is not None:
                        yield variation

    def raise_amounts(self, variation: Variation) -> QueryChange:
        """Return the change with each amount, in turn, raised as far as possible."""
        for condition in self._variations.in_query_order(variation.changes):
            if variation.changes[condition]:
                variation = self._amount_search.raise_amount(variation, condition)
        return self._variations.change("several", variation, len(variation.changes))


def _bounds(variation: Variation) -> dict[str, object]:
    """Return the bounds up to which lowered amounts are raised, by suffix."""
    bounds: dict[str, list[tuple[str, int]]] = {}
    for condition, amount in variation.changes.items():
        if amount:
            bounds.setdefault(condition.suffix or "", []).append((condition.resource_class, condition.amount))
    return {suffix: frozenset(amounts) for suffix, amounts in bounds.items()}
