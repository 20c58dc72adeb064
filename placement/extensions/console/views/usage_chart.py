"""The usage of a class over time as a picture: an area for what was used, or a line for each project or aggregate."""

from __future__ import annotations

import datetime
import functools
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from placement.extensions.console.views import axis
from placement.extensions.console.views.units import in_units
from placement.extensions.v1.history.usage_samples import UsageSample, spread
from placement.extensions.v1.history.usage_shares import MAX_SHARES, Shares, UsageShare

#: The picture, in units of its own: it is stretched to the place that it has.
WIDTH, HEIGHT = 1000, 200
#: Lines that a picture has: as many as there are colours that can be told apart.
MOST_LINES = 8
#: A capacity this many times the usage is not drawn: all lines would lie at the bottom.
_FAR = 3


Sample = TypeVar("Sample", UsageSample, UsageShare)


class _Sampled(Generic[Sample]):
    """What is drawn of samples, in the order of time; at least one."""

    __slots__ = ()

    samples: Sequence[Sample]

    @property
    def last(self) -> Sample:
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


@dataclass(frozen=True, slots=True)
class ChartLine(_Sampled[UsageShare]):
    """What one project or aggregate used.

    Args:
        colour: The number of its colour.
        points: As SVG has them.
    """

    name: str
    colour: int
    samples: Sequence[UsageShare]
    points: str

    @property
    def by_time(self) -> dict[datetime.datetime, int]:
        """What was used at each moment."""
        return {sample.at: sample.used for sample in self.samples}


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A moment of a picture that leads to the state then; places and widths are in percent of the picture."""

    at: datetime.datetime
    x: float
    #: Where the band begins that belongs to the moment, and how wide it is.
    left: float
    width: float
    #: The colour of each line that has a sample then, and its height from above.
    marks: list[tuple[int, float]]
    #: What was used, in words.
    sentence: str


@dataclass(frozen=True)
class UsageChart(_Sampled[UsageSample]):
    """The picture of one class, and the samples behind it.

    Args:
        samples: In the order of time; at least one.
        since: The left edge (naive, UTC).
        until: The right edge, later than the left one.
        shares: What projects or aggregates used, by name, the largest first; each in the order of time.
        colours: The number of the colour of each name.
    """

    resource_class: str
    samples: Sequence[UsageSample]
    since: datetime.datetime
    until: datetime.datetime
    shares: Mapping[str, Sequence[UsageShare]] = field(default_factory=dict)
    colours: Mapping[str, int] = field(default_factory=dict)

    @functools.cached_property
    def top(self) -> int:
        """The amount at the upper edge."""
        return max(1, self._most_drawn, self._most_capacity if self.shows_capacity else 0)

    @property
    def peak(self) -> float:
        """The height of the most that was used, in units of the picture; at least one."""
        return round(max(HEIGHT - self._y(self.most), 1.0), 1)

    @property
    def shows_capacity(self) -> bool:
        """Whether the line of the capacity is drawn."""
        return not self.shares or self._most_capacity <= _FAR * self._most_drawn

    @property
    def is_over(self) -> bool:
        """Whether more is used than the capacity."""
        return self.last.used > self.last.capacity

    @property
    def percent(self) -> int:
        """How much of the capacity is used, in percent."""
        return 100 * self.last.used // max(self.last.capacity, 1)

    @property
    def used_area(self) -> str:
        """The points of the area below what was used."""
        ends = [(self._x(self.samples[0].at), HEIGHT), (self._x(self.last.at), HEIGHT)]
        return _text([ends[0], *((self._x(each.at), self._y(each.used)) for each in self.samples), ends[1]])

    @property
    def used_line(self) -> str:
        """The points of the upper edge of that area."""
        return _text([(self._x(each.at), self._y(each.used)) for each in self.samples])

    @property
    def capacity_line(self) -> str:
        """The points of the line of the capacity."""
        return _text([(self._x(each.at), self._y(each.capacity)) for each in self.samples])

    @functools.cached_property
    def lines(self) -> list[ChartLine]:
        """The lines of the largest projects or aggregates."""
        return [
            ChartLine(
                name, self.colours[name], samples, _text([(self._x(each.at), self._y(each.used)) for each in samples])
            )
            for name, samples in self._drawn.items()
        ]

    @property
    def amounts(self) -> list[tuple[str, float]]:
        """The marks of the vertical axis: label, and height from above in percent."""
        marked = axis.amounts(self.top, self.resource_class)
        labels = ["0", *(in_units(each, self.resource_class) for each in marked[1:])]
        return [(label, 100 * self._y(each) / HEIGHT) for label, each in zip(labels, marked, strict=True)]

    @property
    def moments(self) -> list[tuple[str, float]]:
        """The marks of the horizontal axis: label, and place in percent; none that the edges would cut."""
        marked = ((label, 100 * self._x(at) / WIDTH) for at, label in axis.moments(self.since, self.until))
        return [(label, x) for label, x in marked if 3 <= x <= 96]

    def points(self, most: int) -> list[ChartPoint]:
        """Return up to ``most`` moments that have a sample, without the present, in order."""
        times = [sample.at for sample in self.samples if sample.at < self.until]
        shown = spread(times, self.since, (self.until - self.since) / most)
        places = [100 * self._x(at) / WIDTH for at in shown]
        edges = [0.0, *((one + other) / 2 for one, other in itertools.pairwise(places)), 100.0]
        by_time = {line.name: (line.colour, line.by_time) for line in self.lines}
        if not by_time:
            by_time[""] = 0, {sample.at: sample.used for sample in self.samples}
        return [
            ChartPoint(
                at,
                x,
                edges[place],
                edges[place + 1] - edges[place],
                [(colour, 100 * self._y(used[at]) / HEIGHT) for colour, used in by_time.values() if at in used],
                ", ".join(
                    f"{name} {in_units(used[at], self.resource_class)}".strip()
                    for name, (_, used) in by_time.items()
                    if at in used
                ),
            )
            for place, (at, x) in enumerate(zip(shown, places, strict=True))
        ]

    @property
    def _drawn(self) -> dict[str, Sequence[UsageShare]]:
        return dict([*self.shares.items()][:MOST_LINES])

    @property
    def _most_drawn(self) -> int:
        return max((share.used for shares in self._drawn.values() for share in shares), default=self.most)

    @property
    def _most_capacity(self) -> int:
        return max(sample.capacity for sample in self.samples)

    def _x(self, at: datetime.datetime) -> float:
        part = (at - self.since) / (self.until - self.since)
        return WIDTH * min(max(part, 0.0), 1.0)

    def _y(self, amount: int) -> float:
        return HEIGHT - HEIGHT * max(amount, 0) / self.top


def charts_of(
    classes: Mapping[str, Sequence[UsageSample]], shares: Shares, since: datetime.datetime, until: datetime.datetime
) -> list[UsageChart]:
    """Return the charts of a page, the fullest class first.

    A name has one colour on the whole page, unless there are more names than colours.
    """
    shares = {name: _with_zeros(shares[name], samples) for name, samples in classes.items() if name in shares}
    drawn = {resource_class: [*shares.get(resource_class, ())][:MOST_LINES] for resource_class in classes}
    names = [*dict.fromkeys(itertools.chain.from_iterable(drawn.values()))]
    found = []
    for resource_class, samples in classes.items():
        coloured = names if len(names) <= MOST_LINES else drawn[resource_class]
        colours = {name: number for number, name in enumerate(coloured)}
        found.append(UsageChart(resource_class, samples, since, until, shares.get(resource_class, {}), colours))
    return sorted(found, key=lambda chart: -chart.percent)


def _with_zeros(
    shares: Mapping[str, Sequence[UsageShare]], samples: Sequence[UsageSample]
) -> dict[str, list[UsageShare]]:
    """Return shares in which a project that has none at a moment used nothing then, where all that did are known."""
    if any(share.capacity is not None for found in shares.values() for share in found):
        return {name: [*found] for name, found in shares.items()}  # of aggregates, which always have one
    known: Counter[datetime.datetime] = Counter(share.at for found in shares.values() for share in found)
    complete = {sample.at for sample in samples if 0 < known[sample.at] < MAX_SHARES}
    return {
        name: sorted(
            [*found, *(UsageShare(name, at, 0) for at in complete - {share.at for share in found})],
            key=lambda share: share.at,
        )
        for name, found in shares.items()
    }


def _text(points: Sequence[tuple[float, float]]) -> str:
    """Return points as SVG has them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
