"""The usage of a class over time as a picture: an area for what was used, a line for the capacity."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from placement.extensions.v1.history.usage_samples import UsageSample

#: The picture, in units of its own: it is stretched to the place that it has.
WIDTH, HEIGHT = 1000, 200


@dataclass(frozen=True, slots=True)
class UsageChart:
    """The picture of one class, and the samples behind it.

    Args:
        samples: In the order of time; at least one.
        since: The left edge (naive, UTC).
        until: The right edge, later than the left one.
    """

    resource_class: str
    samples: Sequence[UsageSample]
    since: datetime.datetime
    until: datetime.datetime

    @property
    def last(self) -> UsageSample:
        """The newest sample."""
        return self.samples[-1]

    @property
    def least(self) -> int:
        """The least that was used."""
        return min(sample.used for sample in self.samples)

    @property
    def most(self) -> int:
        """The most that was used."""
        return max(sample.used for sample in self.samples)

    @property
    def top(self) -> int:
        """The amount at the upper edge."""
        return max(1, self.most, *(sample.capacity for sample in self.samples))

    @property
    def is_over(self) -> bool:
        """Whether more is used than the capacity."""
        return self.last.used > self.last.capacity

    @property
    def used_area(self) -> str:
        """The points of the area below what was used."""
        ends = [(self._x(self.samples[0]), HEIGHT), (self._x(self.last), HEIGHT)]
        return _text([ends[0], *((self._x(each), self._y(each.used)) for each in self.samples), ends[1]])

    @property
    def used_line(self) -> str:
        """The points of the upper edge of that area."""
        return _text([(self._x(each), self._y(each.used)) for each in self.samples])

    @property
    def capacity_line(self) -> str:
        """The points of the line of the capacity."""
        return _text([(self._x(each), self._y(each.capacity)) for each in self.samples])

    def _x(self, sample: UsageSample) -> float:
        part = (sample.at - self.since) / (self.until - self.since)
        return WIDTH * min(max(part, 0.0), 1.0)

    def _y(self, amount: int) -> float:
        return HEIGHT - HEIGHT * max(amount, 0) / self.top


def _text(points: Sequence[tuple[float, float]]) -> str:
    """Return points as SVG has them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
