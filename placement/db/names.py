"""Rows that give a name its id: projects, users, consumer types and aggregates.

Each attempt looks ids up in its own transaction, and nothing remembers them: a database can lose its last commits (a
crash, a failover, a restored backup), and give the id to another name.

A row is made when a name is first used.  An attempt that lacks names runs to its end all the same, so that it is
refused if it has to be; then the rows are made in a short transaction of their own, and the attempt runs again.  So a
refused request leaves no rows, and no claim holds a lock on a name.

A row with ``updated_at`` is about to be removed by a sweep (placement/db/sweep.py).  It counts as absent, and making it
takes the mark away.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement.db import dialects
from placement.db.tables import consumer_types, placement_aggregates, projects, users
from placement.db.transaction import Reading, Transaction

PROJECT, USER, CONSUMER_TYPE, AGGREGATE = "projects", "users", "consumer_types", "placement_aggregates"
_COLUMNS: dict[str, sa.Column[str]] = {
    PROJECT: projects.c.external_id,
    USER: users.c.external_id,
    CONSUMER_TYPE: consumer_types.c.name,
    AGGREGATE: placement_aggregates.c.uuid,
}
#: Names in one statement; SQLite takes no more than 500 parts of a union.
_MANY = 100
#: The id of a name that has none yet, in an attempt that is going to be rolled back.  No row has it.
_NONE_YET = 0


class Name(NamedTuple):
    """What a row stands for."""

    kind: str
    text: str


def lookup(kind: str, number: int) -> sa.Select[tuple[Any, int]]:
    """A statement that gives ``number`` and the id of the name; what it binds is in ``parameters``.

    The database compares, so that names which its collation holds to be equal are one.
    """
    column = _COLUMNS[kind]
    return sa.select(sa.literal_column(str(number)).label("number"), column.table.c.id).where(
        column == sa.bindparam(f"name_{number}"), column.table.c.updated_at.is_(None)
    )


def parameters(names: Collection[Name]) -> dict[str, Any]:
    """What ``lookup`` binds, for names that are numbered from 0 on."""
    return {f"name_{number}": name.text for number, name in enumerate(names)}


def find(db: Reading, names: Collection[Name]) -> dict[Name, int]:
    """The ids of those that have one."""
    found: dict[Name, int] = {}
    ordered = sorted(set(names))
    for start in range(0, len(ordered), _MANY):
        batch = ordered[start : start + _MANY]
        rows = db.execute(_lookups(tuple(name.kind for name in batch)), parameters(batch))
        found |= {batch[row.number]: row.id for row in rows}
    return found


@functools.lru_cache
def _lookups(kinds: tuple[str, ...]) -> sa.CompoundSelect[Any]:
    return sa.union_all(*(lookup(kind, number) for number, kind in enumerate(kinds)))


def require(db: Transaction, names: Collection[Name], found: Mapping[Name, int]) -> Mapping[Name, int]:
    """The ids of all names, of which ``found`` has some; if it lacks any, this attempt is not committed."""
    missing = [name for name in names if name not in found]
    if not missing:
        return found
    db.require(lambda before: make(before, missing))
    return {**found, **dict.fromkeys(missing, _NONE_YET)}


def make(db: Transaction, names: Collection[Name]) -> None:
    """Rows for these names, where there are none."""
    # In one order, and names that differ only in case side by side: other makers of the same names wait, and not for us
    # while we wait for them.
    ordered = sorted(set(names), key=lambda name: (name.kind, name.text.casefold(), name.text))
    for kind, several in itertools.groupby(ordered, lambda name: name.kind):
        column = _COLUMNS[kind]
        unmarked = dialects.upsert(db.dialect, column, updated_at=sa.null())
        db.execute(unmarked, [{column.name: name.text} for name in several])
