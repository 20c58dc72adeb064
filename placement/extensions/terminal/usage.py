"""placement-ask usage: what was used of each resource class over time (docs: ask)."""

from __future__ import annotations

import argparse
import bisect
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.extensions.terminal import filters
from placement.extensions.terminal.style import BLOCKS, Style
from placement.extensions.terminal.tables import seconds, table

Document = Mapping[str, Any]
COLUMNS = ("class", "used", "capacity", "percent", "least", "most", "trend")
#: Characters of a trend.
_TREND = 24
#: The parameters of GET /v1/usage by the names of their options' values.
_PARAMETERS = {"resource_class": "class", "begin": "since", "end": "until", "limit": "limit"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``usage``."""
    options = parser.add_argument_group("which usage")
    options.add_argument("--class", dest="resource_class", metavar="<class>", help="that of a class (default: all)")
    options.add_argument(
        "--from", dest="begin", metavar="<when>", help="not before a date, or an age such as 7d (default: a day)"
    )
    options.add_argument("--to", dest="end", metavar="<when>", help="before a date or an age (default: now)")
    options.add_argument(
        "--limit", type=filters.positive, metavar="<n>", help="this many samples of a class at most (default: 200)"
    )


def parameters(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Return what the arguments of ``add_options`` choose, as parameters of a query."""
    return filters.parameters_of(arguments, _PARAMETERS)


def rows(document: Document, style: Style) -> Iterator[tuple[object, ...]]:
    """Yield a row for each class: the last usage, the least and the most of the period, and how it went.

    Args:
        document: That of the service.
        style: Whether there are block characters; without them the trend is empty.
    """
    for name, samples in document["classes"].items():
        used = [sample["used"] for sample in samples]
        capacity = samples[-1]["capacity"]
        percent = round(100 * used[-1] / capacity) if capacity else None
        yield name, used[-1], capacity, percent, min(used), max(used), _trend(samples) if style.blocks else ""


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines that show the usage."""
    found = list(rows(document, style))
    dates = [sample["at"] for samples in document["classes"].values() for sample in samples]
    yield f"From {seconds(min(dates))} to {seconds(max(dates))}:" if dates else "No usage is known."
    yield from table(COLUMNS, found, style, bad=lambda row: row[1] > row[2])


def _trend(samples: Sequence[Document]) -> str:
    """Return how full a class was: a block for each of equal spans of time, by the last sample until its end."""
    dates = [datetime.datetime.fromisoformat(sample["at"]) for sample in samples]
    first, last = dates[0], dates[-1]
    count = _TREND if last > first else 1
    ends = (first + (last - first) * (number + 1) / count for number in range(count))
    shown = (samples[bisect.bisect_right(dates, end) - 1] for end in ends)
    return "".join(_block(sample["used"], sample["capacity"]) for sample in shown)


def _block(used: int, capacity: int) -> str:
    """Return the lowest block for nothing, the full one if all is used, or more than there is."""
    share = min(used / capacity, 1) if capacity else bool(used)
    return BLOCKS[round(share * (len(BLOCKS) - 1))]
