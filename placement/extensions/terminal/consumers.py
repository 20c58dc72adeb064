"""Output of ``placement-ask consumers`` (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import seconds, table

Document = Mapping[str, Any]
COLUMNS = ("consumer", "type", "project", "user", "since", "until", "provider", "resources")


def rows(consumers: Sequence[Document], *, everywhere: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield a row for each provider on which a consumer holds resources.

    Args:
        everywhere: Whether to repeat the fields of the consumer in every row, for processing; otherwise they are only
            in its first row.
    """
    for consumer in consumers:
        head = tuple(consumer[name] for name in ("uuid", "type", "project", "user", "since"))
        head = (*head, seconds(consumer.get("expires_at")))
        for cells in holdings(consumer["allocations"]):
            yield *head, *cells
            if not everywhere:
                head = ("",) * len(head)


def holdings(allocations: Mapping[str, Document]) -> Iterator[tuple[str, str]]:
    """Yield the display name of each provider (the node's name, its own, or its uuid) and the amounts held on it."""
    for uuid, allocation in allocations.items():
        yield (
            allocation.get("node") or allocation["name"] or uuid,
            ", ".join(f"{amount} {name}" for name, amount in allocation["resources"].items()),
        )


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines for a list of consumers."""
    if not document["consumers"]:
        yield "No consumers."
    yield from table(COLUMNS, list(rows(document["consumers"])), style)
