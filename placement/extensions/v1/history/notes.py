"""Notes of a transaction as rows of events, inserted by the transaction itself (docs/adr/0042).

So a change and its event are committed together or not at all.  The rows bear the number that the transaction has in
the feed.  Notes about one object in the name of one request become one event; a path that ends as it began is left out.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import orjson

from placement.db.engine.compiled import CompiledInsert
from placement.db.schema.clock import CLOCK
from placement.db.writes.author import Author
from placement.db.writes.notes import MEMBERS, RESOURCE_CLASS, TRAIT, Changes, Pair, Path
from placement.extensions.v1 import signals
from placement.extensions.v1.history.tables import events


class EventNotes:
    """What a transaction has changed so far, as events."""

    __slots__ = ("_noted", "_rows")

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._noted: dict[tuple[Author | None, str, str], _Noted] = {}

    def add(
        self,
        kind: str,
        key: str,
        author: Author | None,
        changes: Changes,
        *,
        generations: tuple[int | None, int | None] | None = None,
        row: int | None = None,
        project: str | None = None,
    ) -> None:
        """Note a change of an object; arguments as of ``placement.db.writes.notes.Notes``."""
        noted = self._noted.get((author, kind, key))
        if noted is None:
            noted = self._noted[author, kind, key] = _Noted({})
        for path, (old, new) in changes.items():
            before = noted.changes.get(path)
            noted.changes[path] = (old if before is None else before[0], new)
        if generations is not None:
            noted.generations = generations if noted.generations is None else (noted.generations[0], generations[1])
            noted.row = row
        noted.project = project or noted.project

    def __bool__(self) -> bool:
        return bool(self._noted)

    def inserts(self, writer_id: int, seq: int) -> list[tuple[CompiledInsert, list[dict[str, Any]]]]:
        """Return the insertion of the events, under the number of the transaction in the feed."""
        self._rows = self.rows(writer_id, seq)
        return [(INSERT, self._rows)]

    def committed(self) -> None:
        """Publish how many events were recorded."""
        if self._rows and signals.events_recorded.connected:
            signals.events_recorded(Counter(row["kind"] for row in self._rows))

    def rows(self, writer_id: int, seq: int) -> list[dict[str, Any]]:
        """Return the rows of the events."""
        rows: list[dict[str, Any]] = []
        first: dict[Author | None, int] = {}
        for (author, kind, key), noted in self._noted.items():
            changes = {path: pair for path, pair in noted.changes.items() if pair[0] != pair[1]}
            if not changes and (noted.generations is None or noted.generations[0] == noted.generations[1]):
                continue
            ordinal = len(rows)
            request_ordinal = first.setdefault(author, ordinal)
            before, after = noted.generations or (None, None)
            name = changes.get(("name",))
            rows.append(
                {
                    "writer_id": writer_id,
                    "seq": seq,
                    "ordinal": ordinal,
                    "kind": kind,
                    "uuid": None if kind in (RESOURCE_CLASS, TRAIT) else key,
                    # Of a rename the old one, by which nothing else finds the object.
                    "name": None if name is None else name[0] or name[1],
                    "project": noted.project,
                    "before_generation": before,
                    "generation": after,
                    "row_id": noted.row,
                    "changes": document(changes),
                    "request": _request(author) if request_ordinal == ordinal else None,
                    "request_ordinal": request_ordinal,
                }
            )
        return rows


@dataclasses.dataclass(slots=True)
class _Noted:
    """What was noted about one object in the name of one request."""

    changes: dict[Path, Pair]
    generations: tuple[int | None, int | None] | None = None
    row: int | None = None
    project: str | None = None


def document(changes: Changes) -> str:
    """Return changes as the JSON text of a row.

    A pair is ``[old, new]``, in objects that the path names.  Of sets only ``added`` and ``removed`` members are said.
    """
    found: dict[str, Any] = {}
    for path, pair in changes.items():
        if path[0] in MEMBERS:
            what = "added" if pair[1] else "removed"
            found.setdefault(path[0], {}).setdefault(what, []).append(path[1])
            continue
        place = found
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = pair
    return orjson.dumps(found).decode()


def _request(author: Author | None) -> str | None:
    if author is None:
        return None
    known = {name: value for name in _FIELDS if (value := getattr(author, name)) is not None}
    return orjson.dumps(known).decode()


_FIELDS = tuple(field.name for field in dataclasses.fields(Author))
#: Inserts the rows of a transaction.
INSERT = CompiledInsert(
    events,
    *("writer_id", "seq", "ordinal", "kind", "uuid", "name", "project", "before_generation", "generation"),
    *("row_id", "changes", "request", "request_ordinal"),
    at=CLOCK,
)
