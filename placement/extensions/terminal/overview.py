"""placement-ask overview: all providers as trees, with what they have and what is used (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import name_of, table

Document = Mapping[str, Any]
COLUMNS = ("provider", "class", "used", "capacity", "free", "state", "traits")
#: The state of an inventory whose usage exceeds its capacity; that of others is empty.
_OVER = "over"


def rows(providers: Sequence[Document], *, everywhere: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield a row for each inventory.

    Args:
        providers: Those of the document; a tree begins with its root, and is not interrupted.
        everywhere: Whether every row has the name and the traits, for programs; otherwise the first of a provider has.
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
    """Return how far below its root a provider is; of a part of a tree, how far below the topmost one."""
    return 0 if provider["parent"] is None else depths.get(provider["parent"]["uuid"], -1) + 1


def _state(inventory: Document) -> str:
    return _OVER if inventory and inventory["used"] > inventory["capacity"] else ""


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines that show providers."""
    if not document["providers"]:
        yield "No provider."
    yield from table(COLUMNS, list(rows(document["providers"])), style, bad=_is_over)


def _is_over(row: Sequence[Any]) -> bool:
    return bool(row[COLUMNS.index("state")] == _OVER)
