"""Changes of two or three conditions together that give candidates (docs: v1-explain)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from placement.extensions.v1.explain.amount_search import AmountSearch
from placement.extensions.v1.explain.conditions import Condition
from placement.extensions.v1.explain.variations import QueryChange, Tried, Variations, interchangeable

#: Maximum number of conditions changed together.
_MAX_CONDITIONS = 3


def combined_changes(variations: Variations, amount_search: AmountSearch) -> list[QueryChange]:
    """Return the changes of two conditions that give candidates, or else the changes of three.

    Only conditions that made a difference to a failed search can help, so only these are added to its changes, as in a
    hitting-set tree (Reiter, A Theory of Diagnosis from First Principles, 1987).
    """
    enumeration = _ConditionSets(variations, amount_search)
    failed = [Tried({}, variations.query, variations.outcome)]
    for _ in range(_MAX_CONDITIONS):
        successful, failed = enumeration.one_more(failed)
        if successful:
            # Of changes that become equal once raised, the first in query order is offered.
            successful.sort(key=lambda tried: variations.places(tried.changes), reverse=True)
            different = {interchangeable(tried.query, _bounds(tried)): tried for tried in successful}
            return [enumeration.raised(tried) for tried in different.values()]
    return []


class _ConditionSets:
    """An enumeration of sets of conditions, each set one condition larger than a failed one."""

    def __init__(self, variations: Variations, amount_search: AmountSearch) -> None:
        self._variations = variations
        self._amount_search = amount_search

    def one_more(self, failed: Iterable[Tried]) -> tuple[list[Tried], list[Tried]]:
        """Return the changes with one more condition that give candidates, and the changes that do not."""
        successful: list[Tried] = []
        still_failed: list[Tried] = []
        # No query can make the service use a host that it avoids, so these conditions are never offered.
        sets = dict.fromkeys(
            frozenset({*before.changes, condition})
            for before in failed
            for condition in self._variations.promising(before)
            if not condition.avoided
        )
        for together in sets:
            if not self._variations.searches.left:
                break
            tried = [*self._loosest(together)]
            if any(variation.outcome.found for variation in tried):
                candidates = (*self._ways(together), *tried)
                successful.append(next(variation for variation in candidates if variation.outcome.found))
            else:
                still_failed += tried
        return successful, still_failed

    def _loosest(self, together: frozenset[Condition]) -> Iterator[Tried]:
        """Yield the loosest changes of conditions: if any change of them gives candidates, one of these does."""
        dropped = self._variations.tried(dict.fromkeys(together, 0))
        if dropped is not None and all(map(self._amount_search.is_looser_without, together)):
            yield dropped
        else:
            yield from self._ways(together)

    def _ways(self, together: frozenset[Condition]) -> Iterator[Tried]:
        """Yield the changes of conditions that lower amounts as far as possible.

        Changes that drop fewer classes come first; of equally many, the ones that keep the earlier classes.
        """
        amounts = [condition for condition in self._variations.ordered(together) if condition.kind == "amount"]
        for number in range(len(amounts) + 1):
            for dropped in itertools.combinations(reversed(amounts), number):
                kept = [condition for condition in amounts if condition not in dropped]
                for least in itertools.product(*map(self._amount_search.smallest, kept)):
                    changes = dict.fromkeys(together, 0) | dict(zip(kept, least, strict=True))
                    tried = self._variations.tried(changes)
                    if tried is not None:
                        yield tried

    def raised(self, tried: Tried) -> QueryChange:
        """Return the change with each amount, in turn, raised as far as possible."""
        for condition in self._variations.ordered(tried.changes):
            if tried.changes[condition]:
                tried = self._amount_search.raised(tried, condition)
        return self._variations.change("several", tried, len(tried.changes))


def _bounds(tried: Tried) -> dict[str, object]:
    """Return the bounds up to which lowered amounts are raised, by suffix."""
    bounds: dict[str, list[tuple[str, int]]] = {}
    for condition, amount in tried.changes.items():
        if amount:
            bounds.setdefault(condition.suffix or "", []).append((condition.resource_class, condition.amount))
    return {suffix: frozenset(amounts) for suffix, amounts in bounds.items()}
