"""Tables of names with ids: projects, users, consumer types and aggregates.

Each attempt looks ids up in its own transaction.  They are never cached, because a database can lose its last commits
(a crash, a failover, a restored backup) and assign the id to another name.

A row is created when its name is first used.  An attempt that lacks rows still runs to its end, so that a request that
must be refused is refused.  Then a short separate transaction creates the rows, and the attempt runs again.  So a
request that is refused at once leaves no rows, and a claim holds no lock on a name.

A row with a value in ``updated_at`` is marked for removal by a sweep (placement/db/upkeep/sweep.py).  It counts as
absent; creating the name removes the mark.
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
#: Names per statement; SQLite allows 500 terms in a UNION.
_BATCH_SIZE = 100
#: The id of a name without a row, in an attempt that will be rolled back; no row has this id.
_PLACEHOLDER_ID = 0


class Name(NamedTuple):
    """A name in one of the tables."""

    kind: str
    text: str


def lookup(kind: str, number: int) -> sa.Select[tuple[Any, int]]:
    """Return a query for ``number`` and the id of a name, whose text :func:`parameters` binds.

    The database compares the text, so that names that are equal in its collation share one id.
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
    ids: dict[Name, int] = {}
    ordered = sorted(set(names))
    for start in range(0, len(ordered), _BATCH_SIZE):
        batch = ordered[start : start + _BATCH_SIZE]
        rows = db.execute(_lookups(tuple(name.kind for name in batch)), parameters(batch))
        ids |= {batch[row.number]: row.id for row in rows}
    return ids


@functools.lru_cache
def _lookups(kinds: tuple[str, ...]) -> sa.CompoundSelect[Any]:
    return sa.union_all(*(lookup(kind, number) for number, kind in enumerate(kinds)))


def ensure(db: Transaction, names: Collection[Name], ids: Mapping[Name, int]) -> Mapping[Name, int]:
    """Return the ids of all names; if rows are missing, have them created and this attempt run again.

    Args:
        ids: The ids of the names that have a row.
    """
    require(db, [name for name in names if name not in ids])
    return with_placeholder_ids(names, ids)


def with_placeholder_ids(names: Collection[Name], ids: Mapping[Name, int]) -> Mapping[Name, int]:
    """Return ids for all names, with a placeholder for each name without a row; the attempt must be rolled back."""
    return {**dict.fromkeys(names, _PLACEHOLDER_ID), **ids}


def require(db: Transaction, missing: Collection[Name]) -> None:
    """Have rows created for these names, if any, and this attempt run again."""
    if missing:
        db.require(lambda transaction: create(transaction, missing))


def create(db: Transaction, names: Collection[Name]) -> None:
    """Insert rows for the names that have no row, and remove the marks of existing rows."""
    # Always in the same order, with names that may be equal in a collation next to each other.  So transactions that
    # create the same names wait for each other instead of deadlocking.
    ordered = sorted(set(names), key=lambda name: (name.kind, name.text.casefold(), name.text))
    for kind, names_of_kind in itertools.groupby(ordered, lambda name: name.kind):
        column = _COLUMNS[kind]
        upsert = dialects.upsert(db.dialect, column, updated_at=sa.null())
        db.execute(upsert, [{column.name: name.text} for name in names_of_kind])
