"""Tables that give a name an id: projects, users, consumer types and aggregates.

Each attempt looks ids up in its own transaction.  They are never cached: a database can lose its last commits (a crash,
a failover, a restored backup) and assign the id to another name.

A row is created when its name is first used.  An attempt that lacks rows still runs to its end, so that a request that
must be refused is refused.  Then a short transaction of its own creates the rows, and the attempt runs again.  So a
request that is refused at once leaves no rows, and a claim holds no lock on a name.

A row with a value in ``updated_at`` is marked for removal by a sweep (placement/db/upkeep/sweep.py).  It counts as
absent; creating it removes the mark.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement.db.engine import dialects
from placement.db.schema.tables import consumer_types, placement_aggregates, projects, users
from placement.db.writes.transaction import Reading, Transaction

PROJECT, USER, CONSUMER_TYPE, AGGREGATE = "projects", "users", "consumer_types", "placement_aggregates"
_COLUMNS: dict[str, sa.Column[str]] = {
    PROJECT: projects.c.external_id,
    USER: users.c.external_id,
    CONSUMER_TYPE: consumer_types.c.name,
    AGGREGATE: placement_aggregates.c.uuid,
}
#: Names in one statement; SQLite allows 500 terms in a UNION.
_BATCH = 100
#: The id of a name without a row, in an attempt that will be rolled back.  No row has this id.
_PLACEHOLDER_ID = 0


class Name(NamedTuple):
    """A name, and which of the tables it belongs to."""

    kind: str
    text: str


def lookup(kind: str, number: int) -> sa.Select[tuple[Any, int]]:
    """Return a query for ``number`` and the id of a name, whose text :func:`parameters` binds.

    The database compares the text, so that names that its collation holds equal share one id.
    """
    column = _COLUMNS[kind]
    return sa.select(sa.literal_column(str(number)).label("number"), column.table.c.id).where(
        column == sa.bindparam(f"name_{number}"), column.table.c.updated_at.is_(None)
    )


def parameters(names: Collection[Name]) -> dict[str, Any]:
    """Return the parameters of :func:`lookup` for names numbered from 0."""
    return {f"name_{number}": name.text for number, name in enumerate(names)}


def find(db: Reading, names: Collection[Name]) -> dict[Name, int]:
    """Return the ids of the names that have a row."""
    found: dict[Name, int] = {}
    ordered = sorted(set(names))
    for start in range(0, len(ordered), _BATCH):
        batch = ordered[start : start + _BATCH]
        rows = db.execute(_lookups(tuple(name.kind for name in batch)), parameters(batch))
        found |= {batch[row.number]: row.id for row in rows}
    return found


@functools.lru_cache
def _lookups(kinds: tuple[str, ...]) -> sa.CompoundSelect[Any]:
    return sa.union_all(*(lookup(kind, number) for number, kind in enumerate(kinds)))


def ensure(db: Transaction, names: Collection[Name], found: Mapping[Name, int]) -> Mapping[Name, int]:
    """Return the ids of all names; if rows are missing, have them created and this attempt run again.

    Args:
        found: The ids of the names that have a row.
    """
    require(db, [name for name in names if name not in found])
    return with_placeholder_ids(names, found)


def with_placeholder_ids(names: Collection[Name], found: Mapping[Name, int]) -> Mapping[Name, int]:
    """Return ids of all names, those of the names without a row for an attempt that will be rolled back."""
    return {**dict.fromkeys(names, _PLACEHOLDER_ID), **found}


def require(db: Transaction, missing: Collection[Name]) -> None:
    """Have rows created for these names, if there are any, and this attempt run again."""
    if missing:
        db.require(lambda transaction: create(transaction, missing))


def create(db: Transaction, names: Collection[Name]) -> None:
    """Insert rows for the names that have none."""
    # Always in one order, with names that a collation may hold equal next to each other, so that transactions that
    # create the same names wait for each other and do not deadlock.
    ordered = sorted(set(names), key=lambda name: (name.kind, name.text.casefold(), name.text))
    for kind, several in itertools.groupby(ordered, lambda name: name.kind):
        column = _COLUMNS[kind]
        unmarked = dialects.upsert(db.dialect, column, updated_at=sa.null())
        db.execute(unmarked, [{column.name: name.text} for name in several])
