"""Notes of a transaction as rows of events, which the transaction itself inserts (docs/adr/0042).

So a change and its event are committed together or not at all.  The rows bear the transaction's number in the feed.
Notes about one object in the name of one request become one event, which leaves out paths that end as they began.
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
class _Noted:
    """What was noted about one object in the name of one request."""

    author: Author | None
    kind: str
    key: str
    changes: dict[Path, Pair]
    advance: Advance | None
    project: str | None


class EventNotes:
    """What a transaction has changed so far, as events."""

    __slots__ = ("_noted", "_rows")

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        #: By the identity of the author (each request has one such object), the kind and the key.
        self._noted: dict[tuple[int, str, str], _Noted] = {}

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
        """Note a change of an object; arguments as for ``placement.db.writes.notes.Notes``."""
        place = id(author), kind, key
        noted = self._noted.get(place)
        if noted is None:
            self._noted[place] = _Noted(author, kind, key, dict(changes), advance, project)
            return
        for path, pair in changes.items():
            before, _ = noted.changes.get(path, pair)
            noted.changes[path] = (before, pair[1])
        if advance is not None:
            first = noted.advance or advance
            noted.advance = advance._replace(before=first.before)

    def __bool__(self) -> bool:
        return bool(self._noted)

    def inserts(self, writer_id: int, seq: int) -> list[tuple[CompiledInsert, list[dict[str, Any]]]]:
        """Return the INSERT of the events, under the transaction's number in the feed."""
        rows: list[dict[str, Any]] = []
        first: dict[int, int] = {}
        for noted in self._noted.values():
            changes = document(noted.changes)
            row, before, after = noted.advance or _NO_ADVANCE
            if not changes and before == after:
                continue
            ordinal = len(rows)
            request_ordinal = first.setdefault(id(noted.author), ordinal)
            old_name, new_name = changes.get("name", (None, None))
            rows.append(
                {
                    "writer_id": writer_id,
                    "seq": seq,
                    "ordinal": ordinal,
                    "kind": noted.kind,
                    "uuid": None if noted.kind in (RESOURCE_CLASS, TRAIT) else noted.key,
                    # For a rename the old name, by which nothing else finds the object.
                    "name": old_name or new_name,
                    "project": noted.project,
                    "before_generation": before,
                    "generation": after,
                    "row_id": row,
                    "changes": orjson.dumps(changes).decode(),
                    "request": _request(noted.author) if request_ordinal == ordinal else None,
                    "request_ordinal": request_ordinal,
                }
            )
        self._rows = rows
        return [(INSERT, rows)]

    def committed(self) -> None:
        """Publish how many events were recorded."""
        if self._rows and signals.events_recorded.connected:
            signals.events_recorded(Counter(row["kind"] for row in self._rows))


def document(changes: Changes) -> dict[str, Any]:
    """Return changes as an event states them, without those that end as they began.

    A pair is ``[old, new]``, in nested objects as the path says.  A set lists only ``added`` and ``removed`` members.
    """
    found: dict[str, Any] = {}
    for path, pair in changes.items():
        if pair[0] == pair[1]:
            continue
        if path[0] in MEMBERS:
            what = "added" if pair[1] else "removed"
            found.setdefault(path[0], {}).setdefault(what, []).append(path[1])
            continue
        place = found
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = pair
    return found


def _request(author: Author | None) -> str | None:
    if author is None:
        return None
    known = {name: value for name in _FIELDS if (value := getattr(author, name)) is not None}
    return orjson.dumps(known).decode()


_NO_ADVANCE = Advance(None, None, None)
_FIELDS = tuple(field.name for field in dataclasses.fields(Author))
#: Inserts the rows of a transaction.
INSERT = CompiledInsert(
    events,
    *("writer_id", "seq", "ordinal", "kind", "uuid", "name", "project", "before_generation", "generation"),
    *("row_id", "changes", "request", "request_ordinal"),
    at=CLOCK,
)
