"""placement-ask consumers: who holds what (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import seconds, table

Document = Mapping[str, Any]
COLUMNS = ("consumer", "type", "project", "user", "since", "until", "provider", "resources")


def rows(consumers: Sequence[Document], *, everywhere: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield a row for each provider that a consumer holds something of.

    Args:
        everywhere: Whether every row says which consumer it is, for programs; otherwise the first of a consumer does.
    """
    for consumer in consumers:
        facts = tuple(consumer[name] for name in ("uuid", "type", "project", "user", "since"))
        facts = (*facts, seconds(consumer.get("expires_at")))
        for held in holdings(consumer["allocations"]):
            yield *facts, *held
            if not everywhere:
                facts = ("",) * len(facts)


def holdings(allocations: Mapping[str, Document]) -> Iterator[tuple[str, str]]:
    """Yield the providers of what is held, by node name, own name or uuid, each with the amounts."""
    for uuid, held in allocations.items():
        yield (
            held.get("node") or held["name"] or uuid,
            ", ".join(f"{amount} {name}" for name, amount in held["resources"].items()),
        )


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines that show consumers."""
    if not document["consumers"]:
        yield "No consumer."
    yield from table(COLUMNS, list(rows(document["consumers"])), style)
