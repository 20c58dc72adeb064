"""Sampling of usage every ten minutes, for charts of past usage (docs/adr/0042, 0048).

The timestamp of a sample is the beginning of its interval, by the database's clock.  So each interval has one sample,
regardless of the process that takes it.
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
from placement.index.live import LiveIndex

#: The time between two samples.
INTERVAL = datetime.timedelta(minutes=10)


def take(database: Database, index: LiveIndex) -> None:
    """Insert the sample of the current interval and its shares, unless they exist.

    The sums over providers and aggregates are computed from the index, because the database takes 46 s for a million
    hosts.

    Raises:
        Failure: As for ``Database.write``.
    """
    at = beginning(database.read(lambda db: db.execute(sa.select(CLOCK)).scalar_one()))
    if database.read(lambda db: _has_sample(db, at)):
        return
    snapshot = index.current()
    sample_rows = [
        {"at": at, "resource_class": name, "capacity": sample.capacity, "used": sample.used}
        for name, sample in samples.present_samples(snapshot, at).items()
    ]
    # Compute the sums outside the write: on SQLite, all other writes would wait for them.
    projects = database.read(lambda db: shares.by_project(db, at))
    share_rows = shares.present_shares(projects, snapshot, at)

    def insert(db: Transaction) -> None:
        # If two processes insert it at once, one of them collides, retries, and finds the sample.
        if _has_sample(db, at):
            return
        if sample_rows:
            db.execute(sa.insert(usage_samples), sample_rows)
        if share_rows:
            db.execute(sa.insert(usage_shares), share_rows)

    database.write(insert)


def _has_sample(db: Reading, at: datetime.datetime) -> bool:
    return db.execute(sa.select(usage_samples.c.at).where(usage_samples.c.at == at).limit(1)).first() is not None


def beginning(timestamp: datetime.datetime) -> datetime.datetime:
    """Return the beginning of the interval that contains a timestamp (naive, UTC)."""
    return timestamp - (timestamp - datetime.datetime.min) % INTERVAL
