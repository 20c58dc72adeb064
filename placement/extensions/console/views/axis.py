"""The axes of a chart: the marked amounts and times."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator

from placement.extensions.console.views import units

#: Maximum number of marks of the vertical axis, without zero, and of the horizontal axis.
_MAX_AMOUNTS = 5
_MAX_TIMES = 8
#: Possible distances between marks of the horizontal axis.
_STEPS = tuple(
    datetime.timedelta(**{unit: number})
    for unit, numbers in (("minutes", (10, 30)), ("hours", (1, 3, 6, 12)), ("days", (1, 2, 5, 10, 30, 100, 400)))
    for number in numbers
)


def amounts(top: int, resource_class: str) -> list[int]:
    """Return evenly spaced amounts from zero to ``top``, round in the units in which they are displayed."""
    step = next(step for step in _round_numbers(*units.scale(resource_class)) if top // step <= _MAX_AMOUNTS)
    return [*range(0, top + 1, step)]


def _round_numbers(count: int, base: int) -> Iterator[int]:
    """Yield 1, 2 and 5 times each power of ten of each unit, ascending; half of the next unit replaces 500.

    Args:
        count: Number of units.
        base: The factor between units.
    """
    for place in range(count):
        is_last = place == count - 1
        for power in itertools.count() if is_last else range(3):
            for factor in (1, 2, 5):
                is_half = not is_last and (power, factor) == (2, 5)
                yield (base // 2 if is_half else factor * 10**power) * base**place


def times(since: datetime.datetime, until: datetime.datetime) -> list[tuple[datetime.datetime, str]]:
    """Return round timestamps (naive, UTC) within a period, each with a label: the time, or the day at midnight."""
    step = next((step for step in _STEPS if (until - since) / step <= _MAX_TIMES), (until - since) / _MAX_TIMES)
    first = since - (since - datetime.datetime.min) % step
    marks = [first + number * step for number in range(1, -((first - until) // step))]
    return [(mark, _label(mark)) for mark in marks]


def _label(mark: datetime.datetime) -> str:
    is_midnight = mark.time() == datetime.time()
    return f"{mark.day} {mark:%b}" if is_midnight else f"{mark:%H:%M}"
