"""Options and output of ``placement-ask capacity``: the number of times that a query fits (docs: ask)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from placement.cmd.text_table import plain
from placement.extensions.terminal import filters
from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import name_of, table

Document = Mapping[str, Any]
COLUMNS = ("of", "name", "count", "exact", "at_most", "detail")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options specific to ``capacity``."""
    parser.add_argument("--until", type=filters.positive, metavar="<n>", help="stop counting at this number")
    parser.add_argument("--count", type=filters.positive, metavar="<n>", help="copies per job, in different trees")


def parameters(arguments: argparse.Namespace) -> str:
    """Return the options as parameters to append to a query string."""
    pairs = [(name, getattr(arguments, name)) for name in ("until", "count")]
    return "".join(f"&{name}={value}" for name, value in pairs if value is not None)


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines for a capacity."""
    count = document["count"]
    if count:
        bound = "exactly" if document["exact"] else "at least"
        upper_bound = "" if document["exact"] or document["at_most"] is None else f" and at most {document['at_most']}"
        yield style.good(
            f"This fits {bound} {count}{upper_bound} {'time' if count == 1 and not upper_bound else 'times'}."
        )
    else:
        yield style.bad("This fits nowhere." if document["exact"] else "No place was found.")
    if document["limiting"]:
        yield plain(document["limiting"]["text"])
    yield ""
    yield from table(COLUMNS, list(rows(document)), style)


def rows(document: Document) -> Iterator[tuple[object, ...]]:
    """Yield a row for the total, each tree and each aggregate."""
    yield "total", "", document["count"], document["exact"], document["at_most"], document["why"]
    for root in document["roots"]:
        yield "tree", name_of(root["provider"]), root["count"], "", "", _limiting_text(root["limiting"])
    for aggregate in document["aggregates"]:
        yield "aggregate", aggregate["uuid"], aggregate["count"], "", "", ""


def fits(document: Document) -> bool:
    """Whether the query fits at least once."""
    return bool(document["count"])


def _limiting_text(limiting: Document) -> str:
    return str(limiting["resource_class"] or limiting["rule"])
