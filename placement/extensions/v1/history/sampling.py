"""Sampling of the usage, every ten minutes, for charts of the past (docs/adr/0042, 0048).

The time of a sample is the beginning of its interval, by the database's clock, so that each interval has one sample,
whichever process takes it.
"""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.clock import CLOCK
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.v1.history import usage_samples as samples
from placement.extensions.v1.history import usage_shares as shares
from placement.extensions.v1.history.tables import usage_samples, usage_shares

#: The time between two samples.
INTERVAL = datetime.timedelta(minutes=10)


def take(database: Database, at: datetime.datetime | None = None) -> None:
    """Insert the sample of an interval, and its shares, unless there is one; raises like ``Database.write``.

    Args:
        at: The beginning of the interval (naive, UTC); None for the current one.
    """
    at = at or beginning(database.read(lambda db: db.execute(sa.select(CLOCK)).scalar_one()))
    if database.read(lambda db: _has_sample(db, at)):
        return
    # Read outside the write: on SQLite, all other writes would wait for the sums.
    sums, parts = database.snapshot(lambda db: (samples.present_rows(db, at), shares.present_rows(db, at)))

    def insert(db: Transaction) -> None:
        # If two processes insert it at once, one collides, runs again, and finds the other's.
        if _has_sample(db, at):
            return
        if sums:
            db.execute(sa.insert(usage_samples), sums)
        if parts:
            db.execute(sa.insert(usage_shares), parts)

    database.write(insert)


def _has_sample(db: Reading, at: datetime.datetime) -> bool:
    return db.execute(sa.select(usage_samples.c.at).where(usage_samples.c.at == at).limit(1)).first() is not None


def beginning(moment: datetime.datetime) -> datetime.datetime:
    """Return the beginning of the interval that a moment (naive, UTC) is in."""
    return moment - (moment - datetime.datetime.min) % INTERVAL
