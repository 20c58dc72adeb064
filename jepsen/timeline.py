"""A picture of a history (SVG): a lane per process, operations as boxes in time, and events behind them.

Time runs from left to right but is not to scale: the distance between two points in time depends on the texts, so that
requests of milliseconds in a run of minutes stay readable.  The order of all starts and ends is exact: two boxes
overlap horizontally if and only if the operations overlapped in time.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from jepsen import formatting
from jepsen.history import RUNNER, Event, History, Operation

#: Pixels: width of a character, height of a box, gap between boxes, and margins beside and above the lanes.
_CHARACTER = 6.7
_BOX, _GAP = 46, 8
_LEFT, _TOP, _MARGIN = 120, 44, 16
_BAND = 20
#: Minimum distance of two points in time, and the addition for each factor of ten in their difference.
_MIN_DISTANCE, _PER_DECADE = 10.0, 7.0
#: Maximum number of characters in a box, and minimum distance of two times on the axis.
_MAX_CHARACTERS, _TICK_DISTANCE = 44, 84

_STYLE = """
svg { background: #ffffff; font: 11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; }
text { fill: #1a1a1a; }
.faint { fill: #5a5a5a; }
.lane { stroke: #d5d5d5; }
.call { fill: #e4edf8; stroke: #3d6ea5; }
.refused { fill: #f1f1f1; stroke: #808080; }
.open { fill: url(#fading); stroke: #8a6d1d; stroke-dasharray: 5 3; }
.from { stop-color: #f6e7b8; } .to { stop-color: #f6e7b8; stop-opacity: 0.15; }
.wrong { stroke: #c22f2f; stroke-width: 2.5; }
.band { fill: #d9a0d0; fill-opacity: 0.28; }
.edge { stroke: #a4509a; stroke-dasharray: 2 3; }
@media (prefers-color-scheme: dark) {
  svg { background: #16181c; }
  text { fill: #e8e8e8; }
  .faint { fill: #a8a8a8; }
  .lane { stroke: #3a3d44; }
  .call { fill: #1d3450; stroke: #7fb0e6; }
  .refused { fill: #2a2c31; stroke: #9a9a9a; }
  .open { stroke: #d9b95c; }
  .from { stop-color: #54471c; } .to { stop-color: #54471c; }
  .wrong { stroke: #ff6b6b; }
  .band { fill: #a4509a; fill-opacity: 0.3; }
  .edge { stroke: #d68acb; }
}
"""


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """The interval of an operation or an event, and the width of its texts; ``until`` is None if it has no end."""

    since: int
    until: int | None
    width: float
    drawn: Operation | Event


def svg(history: History, wrong: Collection[int] = (), title: str = "") -> str:
    """Return the picture as a self-contained SVG document.

    Args:
        wrong: Numbers of the operations to mark, because they violate an invariant.
        title: Sentence above the picture.
    """
    operations = sorted(history.operations, key=lambda operation: (operation.began, operation.number))
    spans = [_Span(operation.began, operation.ended, _width(_texts(operation)), operation) for operation in operations]
    events = [
        _Span(event.began, event.healed, _width([formatting.name_of(event)]), event)
        for event in _events_around(history)
    ]
    return _Picture(spans, events, frozenset(wrong), title).document()


def _events_around(history: History) -> Iterator[Event]:
    """Yield the events that overlap the operations, and the last event before them; without operations, all."""
    if not history.operations:
        yield from history.events
        return
    first = min(operation.began for operation in history.operations)
    last = max(operation.ended or operation.began for operation in history.operations)
    events = sorted((event for event in history.events if event.began <= last), key=lambda event: event.began)
    ended_before = [event for event in events if event.healed is not None and event.healed < first]
    yield from (event for event in events if event not in ended_before[:-1])


def _texts(operation: Operation) -> list[str]:
    """Return the lines in the box of an operation."""
    body, answer = formatting.body_of(operation), formatting.answer_of(operation)
    lines = [f"#{operation.number} {formatting.call_of(operation)}", body, f"→ {answer}"]
    return [line if len(line) <= _MAX_CHARACTERS else f"{line[: _MAX_CHARACTERS - 1]}…" for line in lines]


def _width(lines: Iterable[str]) -> float:
    return max(map(len, lines)) * _CHARACTER + 12


class _Picture:
    """The layout of the picture, and its drawing."""

    def __init__(self, calls: Sequence[_Span], events: Sequence[_Span], wrong: Collection[int], title: str) -> None:
        self._wrong, self._title = wrong, title
        self._calls, self._events = calls, events
        self._places = _places([*calls, *events])
        ends = [self._places[span.since] + span.width for span in [*calls, *events]]
        self._end = _LEFT + max([0.0, *ends, *(place + _TICK_DISTANCE for place in self._places.values())]) + _GAP
        self._bands = _rows(events, self._places)
        rows = max(self._bands.values(), default=-1) + 1
        self._top = _TOP + _BAND * rows + 22
        self._lanes = self._lanes_of(calls)
        self._bottom = self._top + len(self._lanes) * (_BOX + _GAP)

    def _lanes_of(self, calls: Sequence[_Span]) -> dict[tuple[int, int], int]:
        """Return the row of each lane; a process continues in another lane below an open operation."""
        by_process: dict[int, list[_Span]] = defaultdict(list)
        for call in calls:
            assert isinstance(call.drawn, Operation)
            by_process[call.drawn.process].append(call)
        self._row_of: dict[int, tuple[int, int]] = {}
        order = sorted(by_process, key=lambda process: (process == RUNNER, process))
        for process in order:
            for call, row in _rows(by_process[process], self._places).items():
                self._row_of[call.drawn.number] = process, row  # type: ignore[union-attr]
        lanes = sorted(set(self._row_of.values()), key=lambda lane: (order.index(lane[0]), lane[1]))
        return {lane: index for index, lane in enumerate(lanes)}

    def document(self) -> str:
        """Return the SVG document."""
        width = max(self._end + _MARGIN, _MARGIN * 2 + len(self._title) * _CHARACTER)
        height = self._bottom + 24
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}">',
            f"<style>{_STYLE}</style>",
            '<defs><linearGradient id="fading"><stop class="from" offset="0"/><stop class="to" offset="1"/>'
            "</linearGradient></defs>",
            _text(_MARGIN, 22, self._title),
            *self._draw_events(),
            *self._draw_lanes(),
            *self._draw_times(),
            *(self._draw_call(call) for call in self._calls),
            "</svg>\n",
        ])  # fmt: skip

    def _draw_events(self) -> Iterator[str]:
        for event, row in self._bands.items():
            assert isinstance(event.drawn, Event)
            left = self._x(event.since)
            right = self._end if event.until is None else self._x(event.until)
            y = _TOP + row * _BAND - 8
            description = f"{formatting.name_of(event.drawn)}: {_times(event)} {formatting.compact(event.drawn.detail)}"
            yield (
                f'<g><title>{escape(description)}</title><rect class="band" x="{left:.1f}" y="{y}" '
                f'width="{right - left:.1f}" height="{self._bottom - y}"/>{_line("edge", left, y, left, self._bottom)}'
                f"{_text(left + 4, y + 14, formatting.name_of(event.drawn))}</g>"
            )

    def _draw_lanes(self) -> Iterator[str]:
        for (process, row), index in self._lanes.items():
            y = self._top + index * (_BOX + _GAP)
            middle = y + _BOX / 2
            yield _line("lane", _LEFT, middle, self._end, middle)
            if row == 0:
                yield _text(_MARGIN, middle + 4, formatting.client_of(process))

    def _draw_times(self) -> Iterator[str]:
        y, free = self._top - 8, 0.0
        for time, place in sorted(self._places.items()):
            if place >= free:
                yield _text(_LEFT + place, y, f"{time / 1e9:.4f} s", "faint")
                free = place + _TICK_DISTANCE
        yield _text(
            _MARGIN, self._bottom + 16, "Time is not to scale, but the order of starts and ends is exact.", "faint"
        )

    def _draw_call(self, call: _Span) -> str:
        operation = call.drawn
        assert isinstance(operation, Operation)
        y = self._top + self._lanes[self._row_of[operation.number]] * (_BOX + _GAP)
        left = self._x(call.since)
        right = self._end if call.until is None else self._x(call.until)
        kind = "open" if operation.is_open else "call" if operation.succeeded else "refused"
        marked = " wrong" if operation.number in self._wrong else ""
        lines = [_text(left + 6, y + 14 + 13 * index, line) for index, line in enumerate(_texts(operation))]
        return (
            f"<g><title>{escape(formatting.line_of(operation))}</title>{_box(kind + marked, left, y, right, operation)}"
            f"{''.join(lines)}</g>"
        )

    def _x(self, time: int) -> float:
        return _LEFT + self._places[time]


def _box(kind: str, left: float, y: float, right: float, operation: Operation) -> str:
    """Return a rectangle, which is open on the right for an open operation."""
    if not operation.is_open:
        return f'<rect class="{kind}" rx="3" x="{left:.1f}" y="{y}" width="{right - left:.1f}" height="{_BOX}"/>'
    return f'<path class="{kind}" d="M{right:.1f} {y}H{left:.1f}v{_BOX}H{right:.1f}"/>'


def _line(kind: str, *ends: float) -> str:
    x1, y1, x2, y2 = ends
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{attribute} xml:space="preserve">{escape(text)}</text>'


def _times(span: _Span) -> str:
    end = "never healed" if span.until is None else f"{span.until / 1e9:.3f} s"
    return f"{span.since / 1e9:.3f} s - {end}"


def _places(spans: Sequence[_Span]) -> Mapping[int, float]:
    """Return the distance of each point in time from the left, in pixels.

    Distances grow with the logarithm of the time, and each span is at least as wide as its text.
    """
    times = sorted({span.since for span in spans} | {span.until for span in spans if span.until is not None})
    ending: dict[int, list[_Span]] = defaultdict(list)
    for span in spans:
        if span.until is not None:
            ending[span.until].append(span)
    places: dict[int, float] = {}
    position = 0.0
    for earlier, time in itertools.pairwise([times[0] if times else 0, *times]):
        position += _MIN_DISTANCE + _PER_DECADE * len(str((time - earlier) // 1_000_000)) if places else 0.0
        position = max([position, *(places[span.since] + span.width for span in ending[time] if span.since in places)])
        places[time] = position
    return places


def _rows(spans: Sequence[_Span], places: Mapping[int, float]) -> dict[_Span, int]:
    """Return a row for each span without overlaps in a row; a span without an end blocks its row."""
    free: list[float] = []
    rows: dict[_Span, int] = {}
    for span in sorted(spans, key=lambda span: span.since):
        since = places[span.since]
        until = float("inf") if span.until is None else max(places[span.until], since + span.width)
        row = next((row for row, end in enumerate(free) if end <= since), len(free))
        free[row:] = [until, *free[row + 1 :]]
        rows[span] = row
    return rows
