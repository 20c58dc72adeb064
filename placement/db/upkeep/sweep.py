"""Removal of unreferenced projects, users, consumer types and aggregates, by mark and sweep.

No foreign key prevents the removal of a project whose id a concurrent claim has just read.  So a row is first marked,
in ``updated_at``, which has no other use in these tables.  From then on attempts treat it as absent, and remove the
mark before they refer to the row (placement/db/writes/names.py).  A row is deleted once it has been marked for longer
than any attempt lasts, and is still unreferenced.

This needs no table lock.  It is also correct on multi-primary clusters, because both sides write the same row.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.tables import (
    consumer_types,
    consumers,
    placement_aggregates,
    projects,
    resource_provider_aggregates,
    users,
)
from placement.db.writes.transaction import Reading

#: Minimum time between marking and deletion, in seconds; longer than any transaction lasts.
GRACE = 3600
#: Rows per transaction.
BATCH_SIZE = 1000

_REFERENCES: dict[sa.Table, sa.Column[Any]] = {
    projects: consumers.c.project_id,
    users: consumers.c.user_id,
    consumer_types: consumers.c.consumer_type_id,
    placement_aggregates: resource_provider_aggregates.c.aggregate_id,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Swept:
    """The numbers of removed and of marked rows of a table."""

    table: str
    removed: int
    marked: int


def sweep(database: Database, grace: float = GRACE) -> list[Swept]:
    """Remove unused names that were marked at least ``grace`` seconds ago, and mark other unused names."""
    now = database.read(_clock)
    cutoff = now - datetime.timedelta(seconds=grace)
    swept = []
    for table in _REFERENCES:
        marked_long, unmarked = table.c.updated_at <= cutoff, table.c.updated_at.is_(None)
        removed = _change_unused(database, table, marked_long, sa.delete(table))
        marked = _change_unused(database, table, unmarked, sa.update(table).values(updated_at=now))
        swept.append(Swept(table.name, removed, marked))
    return swept


def remove(database: Database, table: sa.Table, condition: sa.ColumnElement[bool]) -> int:
    """Remove the rows that meet the condition, in batches; return their number."""
    return _change(database, table, condition, sa.delete(table))


def _clock(db: Reading) -> datetime.datetime:
    """Return the database's time in UTC; the clocks of two hosts may differ by more than the grace period."""
    now: datetime.datetime = db.execute(sa.select(sa.func.current_timestamp())).scalar_one()
    return now.replace(tzinfo=None)


def _change_unused(
    database: Database, table: sa.Table, condition: sa.ColumnElement[bool], change: sa.Update | sa.Delete
) -> int:
    """Change the unused rows that meet the condition; return their number."""
    reference = _REFERENCES[table]
    # One subquery for all rows, not a correlated one: most of these columns have no index.
    unused = table.c.id.not_in(sa.select(reference).where(reference.is_not(None)))
    return _change(database, table, condition, change, unused)


def _change(
    database: Database,
    table: sa.Table,
    condition: sa.ColumnElement[bool],
    change: sa.Update | sa.Delete,
    *conditions: sa.ColumnElement[bool],
) -> int:
    """Change the rows that meet all conditions, in batches; return their number.

    The statement that changes a row checks ``condition`` again, but not the other conditions.
    """
    matches = sa.select(table.c.id).where(condition, *conditions).order_by(table.c.id)
    ids = database.read(lambda db: db.execute(matches).scalars().all())
    changed = 0
    for start in range(0, len(ids), BATCH_SIZE):
        batch = change.where(table.c.id.in_(ids[start : start + BATCH_SIZE]), condition)
        changed += database.write(lambda db, batch=batch: db.execute(batch).rowcount)  # type: ignore[misc]
    return changed
