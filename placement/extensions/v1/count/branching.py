"""Branch and bound for one packing.

Land and Doig, "An automatic method of solving discrete programming problems", Econometrica 28, 1960.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: States that are looked at before the search is given up.
STATES = 4_000


class Weights(NamedTuple):
    """Whole numbers by which amounts are weighted: no more patterns fit than the free amounts have of ``least``.

    Attributes:
        weights: By row.
        least: The least weighted sum that a pattern takes, above zero.
    """

    weights: tuple[int, ...]
    least: int


class Branching:
    """The search for the most patterns that fit.

    Attributes:
        times: The best solution that was found: how often each pattern is placed.
        states: How many states were looked at.
        complete: Whether there is no better one.
    """

    def __init__(self, patterns: Sequence[Sequence[int]], times: Sequence[int], known: Sequence[Weights]) -> None:
        """Prepare a search.

        Args:
            patterns: By pattern and row.
            times: A solution.
            known: At least one set of weights.
        """
        self.times = list(times)
        self.states = 0
        self._most = sum(times)
        #: By pattern: its amounts above zero, by row.
        self._amounts = [[(row, amount) for row, amount in enumerate(each) if amount] for each in patterns]
        self._weights = [each.weights for each in known]
        #: By pattern and set of weights: the least that this pattern or a later one takes.
        self._least = self._suffixes(known)
        self._placed = [0] * len(patterns)
        #: The states that were looked at, and the most that were placed before one.
        self._seen: dict[tuple[int, ...], int] = {}

    def _suffixes(self, known: Sequence[Weights]) -> list[list[int]]:
        least = []
        for weights, _ in known:
            suffix: list[int] = []
            found = 0
            for amounts in reversed(self._amounts):
                taken = sum(weights[row] * amount for row, amount in amounts)
                found = taken if not suffix else min(found, taken)
                suffix.append(found)
            least.append(suffix[::-1])
        return [list(each) for each in zip(*least, strict=True)]

    @property
    def complete(self) -> bool:
        """Whether no way to place has more than ``times``."""
        return self.states <= STATES

    def run(self, free: Sequence[int]) -> None:
        """Search.

        Args:
            free: By row.
        """
        self._extend(0, list(free), 0)

    def _extend(self, first: int, free: list[int], placed: int) -> None:
        """Place the patterns from ``first`` on; ``placed`` of the earlier ones are placed already."""
        if placed > self._most:
            self._most, self.times = placed, self._placed[:]
        self.states += 1
        if first == len(self._amounts) or self._hopeless(first, free, placed):
            return
        state = first, *free
        if self.states > STATES or self._seen.get(state, -1) >= placed:
            return
        self._seen[state] = placed
        amounts = self._amounts[first]
        most = min(free[row] // amount for row, amount in amounts)
        for row, amount in amounts:
            free[row] -= amount * most
        for times in range(most, -1, -1):
            if times < most:
                for row, amount in amounts:
                    free[row] += amount
            self._placed[first] = times
            self._extend(first + 1, free, placed + times)
            if self.states > STATES:
                return
        self._placed[first] = 0

    def _hopeless(self, first: int, free: list[int], placed: int) -> bool:
        """Whether no way to go on has more than the best solution."""
        missing = self._most - placed + 1
        return any(
            sum(map(int.__mul__, weights, free)) < missing * least
            for weights, least in zip(self._weights, self._least[first], strict=True)
        )
