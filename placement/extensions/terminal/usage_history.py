"""Options and output of ``placement-ask usage``: the usage history of resource classes (docs: ask)."""

from __future__ import annotations

import argparse
import bisect
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.extensions.terminal import filters
from placement.extensions.terminal.style import BLOCKS, UNKNOWN, Style
from placement.extensions.terminal.tables import seconds, table

Document = Mapping[str, Any]
_COLUMNS = ("used", "capacity", "percent", "least", "most", "trend")
#: Characters of the trend.
_TREND = 24
#: Query parameters of GET /v1/usage, by the name of the argument.
_PARAMETERS = {"resource_class": "class", "begin": "from", "end": "to", "by": "by", "limit": "limit"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``usage``."""
    options = parser.add_argument_group("which usage")
    options.add_argument("--class", dest="resource_class", metavar="<class>", help="a resource class (default: all)")
    options.add_argument(
        "--from", dest="begin", metavar="<when>", help="from a date, or an age such as 7d (default: a day)"
    )
    options.add_argument("--to", dest="end", metavar="<when>", help="before a date or an age (default: now)")
    options.add_argument(
        "--by", choices=("project", "aggregate"), help="separately for the largest projects or aggregates"
    )
    options.add_argument(
        "--limit", type=filters.positive, metavar="<n>", help="the maximum number of samples per class (default: 200)"
    )


def parameters(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the arguments of ``add_options`` as query parameters."""
    return filters.parameters_of(arguments, _PARAMETERS)


def columns(by: str | None) -> tuple[str, ...]:
    """Return the names of the columns of ``rows``.

    Args:
        by: ``project`` or ``aggregate``; None for whole classes.
    """
    return ("class", by, *_COLUMNS) if by else ("class", *_COLUMNS)


def rows(document: Document, by: str | None, style: Style) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each class or share: its last, smallest and largest usage, and the trend.

    Args:
        document: The document of GET /v1/usage.
        by: ``project`` or ``aggregate``; None for whole classes.
        style: The style; without block characters the trend is empty.
    """
    if by is None:
        for name, samples in document["classes"].items():
            yield name, *_row(samples, [sample["at"] for sample in samples], style)
        return
    for name, shares in document["shares"].items():
        timestamps = sorted({sample["at"] for share in shares for sample in share["samples"]})
        capacities = {sample["at"]: sample["capacity"] for sample in document["classes"].get(name, ())}
        for share in shares:
            # A project has no capacity: its usage is compared with the capacity of the class.
            samples = [{"capacity": capacities.get(sample["at"], 0), **sample} for sample in share["samples"]]
            yield name, share["name"], *_row(samples, timestamps, style)


def lines(document: Document, style: Style, by: str | None = None) -> Iterator[str]:
    """Yield the lines for the usage of classes, projects or aggregates."""
    table_rows = list(rows(document, by, style))
    dates = [sample["at"] for samples in document["classes"].values() for sample in samples]
    if not table_rows:
        yield f"No usage by {by} is known." if by and dates else "No usage is known."
        return
    yield f"From {seconds(min(dates))} to {seconds(max(dates))}:"
    used, capacity = (columns(by).index(name) for name in ("used", "capacity"))
    yield from table(columns(by), table_rows, style, bad=lambda row: (row[used] or 0) > row[capacity])


def _row(samples: Sequence[Document], timestamps: Sequence[str], style: Style) -> tuple[Any, ...]:
    """Return the cells of ``_COLUMNS``.

    Args:
        samples: The known samples, in order of time.
        timestamps: The timestamps of all samples of the class, in order.  Without a sample at the last timestamp, the
            present usage is unknown, and its cells are empty.
        style: As for ``rows``.
    """
    used = [sample["used"] for sample in samples]
    last = samples[-1]
    now = last["used"] if last["at"] == timestamps[-1] else None
    percent = None if now is None or not last["capacity"] else round(100 * now / last["capacity"])
    return now, last["capacity"], percent, min(used), max(used), _trend(samples, timestamps) if style.blocks else ""


def _trend(samples: Sequence[Document], timestamps: Sequence[str]) -> str:
    """Return the trend: a block for each of equal intervals, which shows the last sample up to its end."""
    by_timestamp = {sample["at"]: sample for sample in samples}
    dates = [datetime.datetime.fromisoformat(timestamp) for timestamp in timestamps]
    first, last = dates[0], dates[-1]
    count = _TREND if last > first else 1
    ends = (first + (last - first) * (number + 1) / count for number in range(count))
    last_samples = (by_timestamp.get(timestamps[bisect.bisect_right(dates, end) - 1]) for end in ends)
    return "".join(_block(sample["used"], sample["capacity"]) if sample else UNKNOWN for sample in last_samples)


def _block(used: int, capacity: int) -> str:
    """Return the block for a usage: the lowest if nothing is used, the full one at or above the capacity."""
    share = min(used / capacity, 1) if capacity else bool(used)
    return BLOCKS[round(share * (len(BLOCKS) - 1))]
