"""Events in words: when, who, what, and how it was changed (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import folded, seconds, width

Document = Mapping[str, Any]
#: What ``rows`` and the lines say of an event, in this order.
COLUMNS = ("time", "who", "what", "changes", "request")
_GAP, _INDENT = "  ", "    "
#: Changes whose values are uuids of providers or nodes.
_REFERENCES = ("parent", "root", "parent_node")


def lines(found: Iterator[Document], style: Style) -> Iterator[str]:
    """Yield a line for each event: when, who, what; in a terminal that is too narrow for it, several."""
    event = None
    for event in found:
        yield from _lines(row(event), style)
    if event is None:
        yield "No event."


def _lines(cells: Sequence[str], style: Style) -> Iterator[str]:
    at, who, what, changes, request = map(plain, cells)
    if changes:
        what += ":"
    one = style.width is None or width(_GAP.join(filter(None, (at, who, what, changes, request)))) <= style.width
    parts = [style.dim(at), style.bold(who), what]
    if one:
        yield _GAP.join(filter(None, (*parts, changes, style.dim(request))))
        return
    yield _GAP.join(parts)
    for text, shown in ((changes, str), (request, style.dim)):
        yield from map(shown, folded(_INDENT + text, style.width or 0) if text else ())


def rows(found: Iterator[Document]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each event."""
    return map(row, found)


def row(event: Document) -> tuple[str, str, str, str, str]:
    """Return the columns of an event."""
    request = event["request"] or {}
    return (
        seconds(event["at"]) or "",
        request.get("user") or request.get("api") or "unknown",
        _what(event),
        ", ".join(_changes(event)),
        request.get("route", ""),
    )


def _what(event: Document) -> str:
    """Return which object was created, deleted or changed."""
    name = event["name"] if event["name"] != event["uuid"] else None  # that of a machine is its uuid
    return f"{event['kind'].replace('_', ' ')} {name or _named(event, event['uuid'])} {_verb(event)}"


def _named(event: Document, uuid: str) -> str:
    """Return the name of a provider or a node that an event mentions, or its uuid if the service knows none."""
    return str(event["names"].get(uuid, uuid))


def _verb(event: Document) -> str:
    before, after = event["generation"]
    # Nodes, resource classes and traits have no generation; what they always have is new or gone with them.
    if before is None and after is None:
        before, after = event["changes"].get("driver" if event["kind"] == "node" else "name", (None, None))
    if before is None and after is not None:
        return "created"
    return "deleted" if before is not None and after is None else "changed"


def _changes(event: Document) -> Iterator[str]:
    """Yield each value that was changed, in words."""
    for name, value in event["changes"].items():
        if name == "allocations":
            side = "for" if event["kind"] == "provider" else "on"
            for uuid, amounts in value.items():
                other = _named(event, uuid)
                yield from (f"{class_} {_pair(pair)} {side} {other}" for class_, pair in amounts.items())
        elif name in ("traits", "aggregates"):
            yield from (f"{name} +{each}" for each in value.get("added", ()))
            yield from (f"{name} -{each}" for each in value.get("removed", ()))
        elif name in _REFERENCES:
            yield f"{name} {_pair([uuid and _named(event, uuid) for uuid in value])}"
        elif name == "consumers":
            pass  # those that came and went are in the allocations
        elif name != "name" or None not in value or _verb(event) == "changed":
            yield from _pairs((name,), value)


def _pairs(path: Sequence[str], value: Any) -> Iterator[str]:
    """Yield the pairs below a path; inventories are named by their class."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _pairs((*path, name), inner)
    else:
        named = path[1:] if path[0] == "inventories" else path
        yield f"{'.'.join(named)} {_pair(value)}"


def _pair(pair: Sequence[Any]) -> str:
    old, new = pair
    if old is None:
        return f"{new}"
    return f"{old} -> {'none' if new is None else new}"
