"""Events as rows and lines: the time, the caller, the object, and the changes (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import fold, seconds, width

Document = Mapping[str, Any]
#: Columns of an event, in rows and lines.
COLUMNS = ("time", "who", "what", "changes", "request")
_GAP, _INDENT = "  ", "    "
#: Changes whose values are uuids of providers or nodes.
_REFERENCES = ("parent", "root", "parent_node")


def lines(events: Iterator[Document], style: Style) -> Iterator[str]:
    """Yield a line for each event, or several in a narrow terminal."""
    event = None
    for event in events:
        yield from _lines(row(event), style)
    if event is None:
        yield "No events."


def _lines(cells: Sequence[str], style: Style) -> Iterator[str]:
    at, caller, subject, changes, request = map(plain, cells)
    if changes:
        subject += ":"
    fits = style.width is None or width(_GAP.join(filter(None, (at, caller, subject, changes, request)))) <= style.width
    parts = [style.dim(at), style.bold(caller), subject]
    if fits:
        yield _GAP.join(filter(None, (*parts, changes, style.dim(request))))
        return
    yield _GAP.join(parts)
    for text, render in ((changes, str), (request, style.dim)):
        yield from map(render, fold(_INDENT + text, style.width or 0) if text else ())


def rows(events: Iterator[Document]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each event."""
    return map(row, events)


def row(event: Document) -> tuple[str, str, str, str, str]:
    """Return the columns of an event."""
    request = event["request"] or {}
    return (
        seconds(event["at"]) or "",
        request.get("user") or request.get("api") or "unknown",
        _subject(event),
        ", ".join(_changes(event)),
        request.get("route", ""),
    )


def _subject(event: Document) -> str:
    """Return the object of an event, and whether it was created, deleted or changed."""
    name = event["name"] if event["name"] != event["uuid"] else None  # the name of a machine's provider is its uuid
    return f"{event['kind'].replace('_', ' ')} {name or _name_of(event, event['uuid'])} {_verb(event)}"


def _name_of(event: Document, uuid: str) -> str:
    """Return the name of a provider or node in an event, or its uuid if the name is unknown."""
    return str(event["names"].get(uuid, uuid))


def _verb(event: Document) -> str:
    before, after = event["generation"]
    # Nodes, resource classes and traits have no generation; a field that is always present shows the change instead.
    if before is None and after is None:
        before, after = event["changes"].get("driver" if event["kind"] == "node" else "name", (None, None))
    if before is None and after is not None:
        return "created"
    return "deleted" if before is not None and after is None else "changed"


def _changes(event: Document) -> Iterator[str]:
    """Yield each changed value as text."""
    for name, value in event["changes"].items():
        if name == "allocations":
            side = "for" if event["kind"] == "provider" else "on"
            for uuid, amounts in value.items():
                object_name = _name_of(event, uuid)
                yield from (
                    f"{resource_class} {_pair(pair)} {side} {object_name}" for resource_class, pair in amounts.items()
                )
        elif name in ("traits", "aggregates"):
            yield from (f"{name} +{member}" for member in value.get("added", ()))
            yield from (f"{name} -{member}" for member in value.get("removed", ()))
        elif name in _REFERENCES:
            yield f"{name} {_pair([uuid and _name_of(event, uuid) for uuid in value])}"
        elif name == "consumers":
            pass  # the changes of the allocations show them
        elif name != "name" or None not in value or _verb(event) == "changed":
            yield from _pairs((name,), value)


def _pairs(path: Sequence[str], value: Any) -> Iterator[str]:
    """Yield the changed values below a path as text; an inventory is named by its class."""
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
