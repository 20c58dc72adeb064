"""The axes of a chart: which amounts and moments are marked."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator

from placement.extensions.console.views import units

#: Marks of an axis at most, besides zero.
_MOST = 5
_MOMENTS = 8
_STEPS = tuple(
    datetime.timedelta(**{unit: number})
    for unit, numbers in (("minutes", (10, 30)), ("hours", (1, 3, 6, 12)), ("days", (1, 2, 5, 10, 30, 100, 400)))
    for number in numbers
)


def amounts(top: int, resource_class: str) -> list[int]:
    """Return some amounts from zero to ``top`` that are round in the units in which people read them."""
    step = next(step for step in _round(*units.scale(resource_class)) if top // step <= _MOST)
    return [*range(0, top + 1, step)]


def _round(count: int, base: int) -> Iterator[int]:
    """Yield 1, 2 and 5 times each power of ten of each unit, ascending; the last but half of the next unit."""
    for place in range(count):
        is_last = place == count - 1
        for power in itertools.count() if is_last else range(3):
            for factor in (1, 2, 5):
                is_half = not is_last and (power, factor) == (2, 5)
                yield (base // 2 if is_half else factor * 10**power) * base**place


def moments(since: datetime.datetime, until: datetime.datetime) -> list[tuple[datetime.datetime, str]]:
    """Return some round moments (naive, UTC) of a period with a label for each: the time, or the day at midnight."""
    step = next((step for step in _STEPS if (until - since) / step <= _MOMENTS), (until - since) / _MOMENTS)
    beginning = since - (since - datetime.datetime.min) % step
    found = [beginning + number * step for number in range(1, -((beginning - until) // step))]
    return [(moment, _label(moment)) for moment in found]


def _label(moment: datetime.datetime) -> str:
    is_midnight = moment.time() == datetime.time()
    return f"{moment.day} {moment:%b}" if is_midnight else f"{moment:%H:%M}"
