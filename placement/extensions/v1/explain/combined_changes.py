"""The changes of two or three conditions together that give candidates (docs: v1-explain)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from placement.extensions.v1.explain.amount_search import AmountSearch
from placement.extensions.v1.explain.conditions import Condition
from placement.extensions.v1.explain.variations import QueryChange, Tried, Variations, interchangeable

#: The most conditions that are changed together.
_SEVERAL = 3


def combined_changes(variations: Variations, lowering: AmountSearch) -> list[QueryChange]:
    """Return the changes of two conditions that give candidates, or else those of three.

    After a search that failed, only conditions that made a difference to it can help: only these are added, as in a
    tree of hitting sets (Reiter, A Theory of Diagnosis from First Principles, 1987).
    """
    trying = _Trying(variations, lowering)
    begun = [Tried({}, variations.query, variations.outcome)]
    for _ in range(_SEVERAL):
        found, begun = trying.one_more(begun)
        if found:
            # Of changes that will be equal, the first is offered.
            found.sort(key=lambda tried: variations.places(tried.changes), reverse=True)
            different = {interchangeable(tried.query, _bounds(tried)): tried for tried in found}
            return [trying.raised(tried) for tried in different.values()]
    return []


class _Trying:
    """Tries sets of conditions."""

    def __init__(self, variations: Variations, lowering: AmountSearch) -> None:
        self._variations = variations
        self._lowering = lowering

    def one_more(self, begun: Iterable[Tried]) -> tuple[list[Tried], list[Tried]]:
        """Return the changes with one more condition that give candidates, and those that do not."""
        found: list[Tried] = []
        following: list[Tried] = []
        # A change that is offered cannot ask the service to take a host that it avoids.
        sets = dict.fromkeys(
            frozenset({*before.changes, condition})
            for before in begun
            for condition in self._variations.promising(before)
            if not condition.avoided
        )
        for together in sets:
            if not self._variations.searches.left:
                break
            tried = [*self._loosest(together)]
            if any(one.outcome.found for one in tried):
                found.append(next(one for one in (*self._ways(together), *tried) if one.outcome.found))
            else:
                following += tried
        return found, following

    def _loosest(self, together: frozenset[Condition]) -> Iterator[Tried]:
        """Yield changes of conditions; if any change of them gives candidates, one of these does."""
        left_out = self._variations.tried(dict.fromkeys(together, 0))
        if left_out is not None and all(map(self._lowering.is_looser_without, together)):
            yield left_out
        else:
            yield from self._ways(together)

    def _ways(self, together: frozenset[Condition]) -> Iterator[Tried]:
        """Yield the changes of conditions that lower amounts as far as possible.

        Changes that leave out fewer classes come first, and among these the ones that keep the earlier classes.
        """
        amounts = [one for one in self._variations.ordered(together) if one.kind == "amount"]
        for number in range(len(amounts) + 1):
            for left_out in itertools.combinations(reversed(amounts), number):
                kept = [one for one in amounts if one not in left_out]
                for least in itertools.product(*map(self._lowering.smallest, kept)):
                    changes = dict.fromkeys(together, 0) | dict(zip(kept, least, strict=True))
                    tried = self._variations.tried(changes)
                    if tried is not None:
                        yield tried

    def raised(self, tried: Tried) -> QueryChange:
        """Return the change in which each amount, in turn, is as large as it can be."""
        for condition in self._variations.ordered(tried.changes):
            if tried.changes[condition]:
                tried = self._lowering.raised(tried, condition)
        return self._variations.change("several", tried, len(tried.changes))


def _bounds(tried: Tried) -> dict[str, object]:
    """Return the bounds up to which lowered amounts are raised, by the suffix of their group."""
    bounds: dict[str, list[tuple[str, int]]] = {}
    for condition, amount in tried.changes.items():
        if amount:
            bounds.setdefault(condition.suffix or "", []).append((condition.resource_class, condition.amount))
    return {suffix: frozenset(amounts) for suffix, amounts in bounds.items()}
