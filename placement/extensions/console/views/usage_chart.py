"""Charts of usage history: an area for the total of a class, or a line for each project or aggregate."""

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
from placement.extensions.v1.history.usage_samples import UsageSample, last_of_spans
from placement.extensions.v1.history.usage_shares import MAX_SHARES, Shares, UsageShare

#: Width and height of the view box; the browser stretches the chart to its container.
WIDTH, HEIGHT = 1000, 200
#: Maximum number of lines in a chart: the number of distinguishable colours.
MAX_LINES = 8
#: Multiple of the usage above which the capacity is not drawn, since it would flatten all lines.
_MAX_CAPACITY_RATIO = 3


Sample = TypeVar("Sample", UsageSample, UsageShare)


class _SampleSeries(Generic[Sample]):
    """A series of at least one sample, by time."""

    __slots__ = ()

    samples: Sequence[Sample]

    @property
    def last(self) -> Sample:
        """The newest sample."""
        return self.samples[-1]

    @property
    def minimum(self) -> int:
        """The smallest usage."""
        return min(sample.used for sample in self.samples)

    @property
    def maximum(self) -> int:
        """The largest usage."""
        return max(sample.used for sample in self.samples)


@dataclass(frozen=True, slots=True)
class ChartLine(_SampleSeries[UsageShare]):
    """The usage of one project or aggregate.

    Attributes:
        colour: The number of the colour.
        points: The value of the SVG attribute ``points``.
    """

    name: str
    colour: int
    samples: Sequence[UsageShare]
    points: str

    @property
    def by_time(self) -> dict[datetime.datetime, int]:
        """The usage at each time."""
        return {sample.at: sample.used for sample in self.samples}


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A point in time in a chart, with a link to the state at that time; positions and widths are in percent."""

    at: datetime.datetime
    x: float
    #: Left edge and width of the band in which the pointer selects this time.
    left: float
    width: float
    #: Colour and distance from the top of each line with a sample at this time.
    marks: list[tuple[int, float]]
    #: The usage, in words.
    sentence: str


@dataclass(frozen=True)
class UsageChart(_SampleSeries[UsageSample]):
    """The chart of one class.

    Attributes:
        samples: The samples, by time; at least one.
        since: The time at the left edge (naive, UTC).
        until: The time at the right edge; later than ``since``.
        shares: Samples of projects or aggregates by name, the largest first, each by time.
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
        return max(1, self._max_drawn, self._max_capacity if self.shows_capacity else 0)

    @property
    def peak(self) -> float:
        """The height of the largest usage, in units of the view box; at least one."""
        return round(max(HEIGHT - self._y(self.maximum), 1.0), 1)

    @property
    def shows_capacity(self) -> bool:
        """Whether the capacity is drawn."""
        return not self.shares or self._max_capacity <= _MAX_CAPACITY_RATIO * self._max_drawn

    @property
    def is_over(self) -> bool:
        """Whether the class is over-committed in the newest sample."""
        return self.last.used > self.last.capacity

    @property
    def percent(self) -> int:
        """The used share of the capacity in the newest sample, in percent."""
        return 100 * self.last.used // max(self.last.capacity, 1)

    @property
    def used_area(self) -> str:
        """The points of the area below the line of usage."""
        ends = [(self._x(self.samples[0].at), HEIGHT), (self._x(self.last.at), HEIGHT)]
        return _svg_points([ends[0], *((self._x(sample.at), self._y(sample.used)) for sample in self.samples), ends[1]])

    @property
    def used_line(self) -> str:
        """The points of the upper edge of ``used_area``."""
        return _svg_points([(self._x(sample.at), self._y(sample.used)) for sample in self.samples])

    @property
    def capacity_line(self) -> str:
        """The points of the capacity line."""
        return _svg_points([(self._x(sample.at), self._y(sample.capacity)) for sample in self.samples])

    @functools.cached_property
    def lines(self) -> list[ChartLine]:
        """The lines of the largest projects or aggregates."""
        return [
            ChartLine(
                name,
                self.colours[name],
                samples,
                _svg_points([(self._x(sample.at), self._y(sample.used)) for sample in samples]),
            )
            for name, samples in self._drawn_shares.items()
        ]

    @property
    def amounts(self) -> list[tuple[str, float]]:
        """The marks of the vertical axis: label, and distance from the top in percent."""
        marks = axis.amounts(self.top, self.resource_class)
        labels = ["0", *(in_units(amount, self.resource_class) for amount in marks[1:])]
        return [(label, 100 * self._y(amount) / HEIGHT) for label, amount in zip(labels, marks, strict=True)]

    @property
    def times(self) -> list[tuple[str, float]]:
        """The marks of the horizontal axis: label, and position in percent; marks too close to an edge are left out."""
        marks = ((label, 100 * self._x(at) / WIDTH) for at, label in axis.times(self.since, self.until))
        return [(label, x) for label, x in marks if 3 <= x <= 96]

    def points(self, max_points: int) -> list[ChartPoint]:
        """Return up to ``max_points`` sampled times before the right edge, in order."""
        times = [sample.at for sample in self.samples if sample.at < self.until]
        chosen = last_of_spans(times, self.since, (self.until - self.since) / max_points)
        positions = [100 * self._x(at) / WIDTH for at in chosen]
        edges = [0.0, *((left + right) / 2 for left, right in itertools.pairwise(positions)), 100.0]
        by_time = {line.name: (line.colour, line.by_time) for line in self.lines}
        if not by_time:
            by_time[""] = 0, {sample.at: sample.used for sample in self.samples}
        return [
            ChartPoint(
                at,
                x,
                edges[number],
                edges[number + 1] - edges[number],
                [(colour, 100 * self._y(used[at]) / HEIGHT) for colour, used in by_time.values() if at in used],
                ", ".join(
                    f"{name} {in_units(used[at], self.resource_class)}".strip()
                    for name, (_, used) in by_time.items()
                    if at in used
                ),
            )
            for number, (at, x) in enumerate(zip(chosen, positions, strict=True))
        ]

    @property
    def _drawn_shares(self) -> dict[str, Sequence[UsageShare]]:
        return dict([*self.shares.items()][:MAX_LINES])

    @property
    def _max_drawn(self) -> int:
        return max((share.used for shares in self._drawn_shares.values() for share in shares), default=self.maximum)

    @property
    def _max_capacity(self) -> int:
        return max(sample.capacity for sample in self.samples)

    def _x(self, at: datetime.datetime) -> float:
        fraction = (at - self.since) / (self.until - self.since)
        return WIDTH * min(max(fraction, 0.0), 1.0)

    def _y(self, amount: int) -> float:
        return HEIGHT - HEIGHT * max(amount, 0) / self.top


def charts_of(
    classes: Mapping[str, Sequence[UsageSample]], shares: Shares, since: datetime.datetime, until: datetime.datetime
) -> list[UsageChart]:
    """Return the charts of a page, the class with the highest used share first.

    A name keeps its colour across the page unless the names outnumber the colours.
    """
    shares = {name: _with_zeros(shares[name], samples) for name, samples in classes.items() if name in shares}
    drawn = {resource_class: [*shares.get(resource_class, ())][:MAX_LINES] for resource_class in classes}
    names = [*dict.fromkeys(itertools.chain.from_iterable(drawn.values()))]
    charts = []
    for resource_class, samples in classes.items():
        coloured = names if len(names) <= MAX_LINES else drawn[resource_class]
        colours = {name: number for number, name in enumerate(coloured)}
        charts.append(UsageChart(resource_class, samples, since, until, shares.get(resource_class, {}), colours))
    return sorted(charts, key=lambda chart: -chart.percent)


def _with_zeros(
    shares: Mapping[str, Sequence[UsageShare]], samples: Sequence[UsageSample]
) -> dict[str, list[UsageShare]]:
    """Return the shares with zeros for projects that used nothing, at the times for which all projects were sampled."""
    if any(share.capacity is not None for series in shares.values() for share in series):
        return {name: [*series] for name, series in shares.items()}  # shares of aggregates, which are complete
    share_counts: Counter[datetime.datetime] = Counter(share.at for series in shares.values() for share in series)
    complete = {sample.at for sample in samples if 0 < share_counts[sample.at] < MAX_SHARES}
    return {
        name: sorted(
            [*series, *(UsageShare(name, at, 0) for at in complete - {share.at for share in series})],
            key=lambda share: share.at,
        )
        for name, series in shares.items()
    }


def _svg_points(points: Sequence[tuple[float, float]]) -> str:
    """Return the SVG attribute ``points``."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
