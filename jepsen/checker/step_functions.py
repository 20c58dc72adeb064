"""Step functions of time, which is an integer in nanoseconds."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from jepsen.checker.registers import Register, Value, Write


class Steps:
    """A step function."""

    def __init__(self, changes: Iterable[tuple[float, float]]) -> None:
        """Initialize the function from its changes: pairs of a time and the increase at that time.  It begins at 0."""
        ordered = sorted(changes)
        self.times = [time for time, _ in ordered]
        self._values = list(accumulate((change for _, change in ordered), initial=0.0))

    def at(self, time: float) -> float:
        """Return the value at a time."""
        return self._values[bisect.bisect_right(self.times, time)]

    def times_within(self, began: float, ended: float) -> Iterator[float]:
        """Yield the beginning of an interval, and the times within it at which the function changes."""
        yield began
        first, last = bisect.bisect_right(self.times, began), bisect.bisect_right(self.times, ended)
        yield from self.times[first:last]


def changes(register: Register[Value], bound: Callable[[Sequence[Write[Value]]], float]) -> list[tuple[float, float]]:
    """Return the changes over time of a bound of a register's possible values.

    Args:
        bound: Function of the writes whose values the register may have; for example the greatest amount.
    """
    deltas, previous = [], 0.0
    for time in register.changes():
        value = bound(register.possible(time, time))
        if value != previous:
            deltas.append((time, value - previous))
            previous = value
    return deltas


def combined_times(functions: Iterable[Steps], began: float, ended: float) -> Sequence[float]:
    """Return the times within an interval at which a function changes, and the beginning of the interval."""
    return sorted({time for function in functions for time in function.times_within(began, ended)})
