"""Output of ``placement-ask overview``: providers as trees with inventories and usage (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import name_of, table

Document = Mapping[str, Any]
COLUMNS = ("provider", "class", "used", "capacity", "free", "state", "traits")
#: The state of an over-committed inventory; the state of any other is empty.
_OVER = "over"


def rows(providers: Sequence[Document], *, everywhere: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield a row for each inventory.

    Args:
        providers: The providers of the document, tree by tree, each beginning with its root.
        everywhere: Whether to repeat the name and the traits in every row, for processing; otherwise they are only in
            the first row of a provider.
    """
    depths: dict[str, int] = {}
    for provider in providers:
        depth = depths[provider["uuid"]] = _depth(provider, depths)
        indent = "" if everywhere else "  " * depth
        name, traits = indent + name_of(provider), ", ".join(provider["traits"])
        for resource_class, inventory in provider["inventories"].items() or [("", {})]:
            amounts = (inventory.get("used"), inventory.get("capacity"), inventory.get("free"))
            yield name, resource_class, *amounts, _state(inventory), traits
            if not everywhere:
                name, traits = "", ""


def _depth(provider: Document, depths: Mapping[str, int]) -> int:
    """Return the depth of a provider below the root, or below the topmost provider of a partial tree."""
    return 0 if provider["parent"] is None else depths.get(provider["parent"]["uuid"], -1) + 1


def _state(inventory: Document) -> str:
    return _OVER if inventory and inventory["used"] > inventory["capacity"] else ""


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines for a list of providers."""
    if not document["providers"]:
        yield "No providers."
    yield from table(COLUMNS, list(rows(document["providers"])), style, bad=_is_over)


def _is_over(row: Sequence[Any]) -> bool:
    return bool(row[COLUMNS.index("state")] == _OVER)
