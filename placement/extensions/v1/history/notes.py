"""Changes of a transaction as rows of events (docs/adr/0042).

The transaction inserts the rows itself, so a change and its event are committed together.  The key of the rows is the
transaction's number in the feed.  All changes of one object by one request become one event, without values that
the request restored.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import orjson

from placement.db.engine.compiled import CompiledInsert
from placement.db.schema.clock import CLOCK
from placement.db.writes.author import Author
from placement.db.writes.notes import MEMBERS, RESOURCE_CLASS, TRAIT, Advance, Changes, Pair, Path
from placement.extensions.v1 import signals
from placement.extensions.v1.history.tables import events


@dataclasses.dataclass(slots=True)
class _ObjectChanges:
    """The changes of one object by one request."""

    author: Author | None
    kind: str
    key: str
    changes: dict[Path, Pair]
    advance: Advance | None
    project: str | None


class EventNotes:
    """The events of a transaction in progress."""

    __slots__ = ("_entries", "_rows")

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        #: Changes by author (its identity, because each request has its own object), kind and key.
        self._entries: dict[tuple[int, str, str], _ObjectChanges] = {}

    def add(
        self,
        kind: str,
        key: str,
        author: Author | None,
        changes: Changes,
        *,
        advance: Advance | None = None,
        project: str | None = None,
    ) -> None:
        """Record a change of an object; arguments as for ``placement.db.writes.notes.Notes``."""
        event_key = id(author), kind, key
        entry = self._entries.get(event_key)
        if entry is None:
            self._entries[event_key] = _ObjectChanges(author, kind, key, dict(changes), advance, project)
            return
        for path, pair in changes.items():
            before, _ = entry.changes.get(path, pair)
            entry.changes[path] = (before, pair[1])
        if advance is not None:
            first = entry.advance or advance
            entry.advance = advance._replace(before=first.before)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def inserts(self, writer_id: int, seq: int) -> list[tuple[CompiledInsert, list[dict[str, Any]]]]:
        """Return the INSERT statement of the events and its rows.

        Args:
            writer_id: The feed writer of the transaction.
            seq: The number of the transaction.
        """
        rows: list[dict[str, Any]] = []
        first: dict[int, int] = {}
        for entry in self._entries.values():
            changes = document(entry.changes)
            row, before, after = entry.advance or _NO_ADVANCE
            if not changes and before == after:
                continue
            ordinal = len(rows)
            request_ordinal = first.setdefault(id(entry.author), ordinal)
            old_name, new_name = changes.get("name", (None, None))
            rows.append(
                {
                    "writer_id": writer_id,
                    "seq": seq,
                    "ordinal": ordinal,
                    "kind": entry.kind,
                    "uuid": None if entry.kind in (RESOURCE_CLASS, TRAIT) else entry.key,
                    # For a rename, the old name, so that a lookup by that name finds the object.
                    "name": old_name or new_name,
                    "project": entry.project,
                    "before_generation": before,
                    "generation": after,
                    "row_id": row,
                    "changes": orjson.dumps(changes).decode(),
                    "request": _request(entry.author) if request_ordinal == ordinal else None,
                    "request_ordinal": request_ordinal,
                }
            )
        self._rows = rows
        return [(INSERT, rows)]

    def committed(self) -> None:
        """Publish the number of recorded events."""
        if self._rows and signals.events_recorded.connected:
            signals.events_recorded(Counter(row["kind"] for row in self._rows))


def document(changes: Changes) -> dict[str, Any]:
    """Return the changes as a JSON object, without values that are equal before and after.

    The path of a change becomes nested objects around the pair ``[old, new]``.  A set has the members ``added`` and
    ``removed``.
    """
    nested: dict[str, Any] = {}
    for path, pair in changes.items():
        if pair[0] == pair[1]:
            continue
        if path[0] in MEMBERS:
            change = "added" if pair[1] else "removed"
            nested.setdefault(path[0], {}).setdefault(change, []).append(path[1])
            continue
        parent = nested
        for name in path[:-1]:
            parent = parent.setdefault(name, {})
        parent[path[-1]] = pair
    return nested


def _request(author: Author | None) -> str | None:
    if author is None:
        return None
    fields = {name: value for name in _FIELDS if (value := getattr(author, name)) is not None}
    return orjson.dumps(fields).decode()


_NO_ADVANCE = Advance(None, None, None)
_FIELDS = tuple(field.name for field in dataclasses.fields(Author))
#: The INSERT of a transaction's events.
INSERT = CompiledInsert(
    events,
    *("writer_id", "seq", "ordinal", "kind", "uuid", "name", "project", "before_generation", "generation"),
    *("row_id", "changes", "request", "request_ordinal"),
    at=CLOCK,
)
