"""Options and output of ``placement-ask doctor`` (docs: ask)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import Style

Document = Mapping[str, Any]
#: Places shown of each finding.
_MAX_PLACES = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``doctor``."""
    parser.add_argument(
        "--check", action="append", default=[], metavar="<name>", help="run this check only; repeatable"
    )


def is_well(document: Document) -> bool:
    """Whether the findings contain neither a warning nor an error."""
    return all(finding["severity"] == "info" for finding in document["findings"])


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines for the findings, the worst first, and for the skipped checks."""
    for finding in document["findings"]:
        heading = f"{finding['severity']}: {plain(finding['check'])}"
        yield style.dim(heading) if finding["severity"] == "info" else style.bad(heading)
        yield f"  {plain(finding['what'])}"
        yield from (f"    {plain(place)}" for place in finding["where"][:_MAX_PLACES])
        if finding["count"] > _MAX_PLACES:
            yield f"    and {finding['count'] - _MAX_PLACES} more: placement-manage doctor --json prints all"
        yield f"  {style.bold('fix:')} {plain(finding['fix'])}"
        yield ""
    skipped = [check for check in document["checks"] if check["not_made"] is not None]
    completed = len(document["checks"]) - len(skipped)
    count = len(document["findings"])
    checks, findings = "check" if completed == 1 else "checks", "finding" if count == 1 else "findings"
    yield f"{completed} {checks}, {count} {findings}."
    for check in skipped:
        yield style.dim(f"skipped: {plain(check['name'])}: {plain(check['not_made'])}")
