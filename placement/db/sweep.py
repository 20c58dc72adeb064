"""Removal of names that nothing refers to: projects, users, consumer types and aggregates.

No foreign key keeps a project from being removed beside a claim that has just read its id.  So a row is marked first,
in ``updated_at``, which has no other use in these tables.  From then on attempts take it for absent, and take the mark
away before they refer to the row (placement/db/names.py).  A row goes once it has been marked for longer than any
attempt lasts, and still nothing refers to it.

This needs no lock of a table, and holds where several nodes of a cluster write: both sides write the same row.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.tables import (
    consumer_types,
    consumers,
    placement_aggregates,
    projects,
    resource_provider_aggregates,
    users,
)
from placement.db.transaction import Reading

#: Seconds that a row stays marked at least: more than any transaction lasts.
GRACE = 3600
#: Rows in one transaction.
_MANY = 1000

_REFERENCES: dict[sa.Table, sa.Column[Any]] = {
    projects: consumers.c.project_id,
    users: consumers.c.user_id,
    consumer_types: consumers.c.consumer_type_id,
    placement_aggregates: resource_provider_aggregates.c.aggregate_id,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Swept:
    """How many rows of a table were removed, and how many marked."""

    table: str
    removed: int
    marked: int


def sweep(database: Database, grace: float = GRACE) -> list[Swept]:
    """Remove what was marked ``grace`` seconds ago and is still unused, and mark what else is unused now."""
    now = database.read(_clock)
    before = now - datetime.timedelta(seconds=grace)
    swept = []
    for table in _REFERENCES:
        marked_long, unmarked = table.c.updated_at <= before, table.c.updated_at.is_(None)
        removed = _change_unused(database, table, marked_long, sa.delete(table))
        marked = _change_unused(database, table, unmarked, sa.update(table).values(updated_at=now))
        swept.append(Swept(table.name, removed, marked))
    return swept


def _clock(db: Reading) -> datetime.datetime:
    """The database's time, in UTC: the clocks of two hosts that sweep may differ by more than the grace."""
    now: datetime.datetime = db.execute(sa.select(sa.func.current_timestamp())).scalar_one()
    return now.replace(tzinfo=None)


def _change_unused(
    database: Database, table: sa.Table, condition: sa.ColumnElement[bool], change: sa.Update | sa.Delete
) -> int:
    """How many rows were changed of those that are unused and meet the condition, which is looked at once more."""
    reference = _REFERENCES[table]
    # Not a subquery for each row: few of these columns have an index of their own.
    unused = table.c.id.not_in(sa.select(reference).where(reference.is_not(None)))
    found = sa.select(table.c.id).where(unused, condition).order_by(table.c.id)
    ids = database.read(lambda db: db.execute(found).scalars().all())
    changed = 0
    for start in range(0, len(ids), _MANY):
        batch = change.where(table.c.id.in_(ids[start : start + _MANY]), condition)
        changed += database.write(lambda db, batch=batch: db.execute(batch).rowcount)  # type: ignore[misc]
    return changed
