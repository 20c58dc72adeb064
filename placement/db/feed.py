"""The change feed: the providers that each committed transaction changed (docs/adr/0004).

A *writer* numbers its transactions 1, 2, 3, ...  Only one transaction at a time uses a writer, so the writer's
transactions commit in the order of their sequence numbers: a reader that has seen number n has seen every lower number.
Every transaction that changes search results inserts one row per provider, under its writer and sequence number.
Writers share no rows, so the feed adds no lock contention.  A reader's position is one sequence number per writer: a
vector clock.

A writer and a sequence number identify one transaction permanently, even if the database loses its newest commits:
writer ids are random, and a number that may have been committed is not reused.  A writer's rows are deleted in
ascending order.  So a reader that finds the row of its own position has missed nothing, and finds every row after it.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import secrets
import time
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from placement.db.engine.compiled import CompiledInsert
from placement.db.schema.tables import change_writers, provider_changes

#: Kinds of changes, in ascending order of strength; a transaction records the strongest one of each provider.
USAGE = "usage"  # allocations on the provider
SHAPE = "shape"  # anything else about it: inventory, traits, aggregates, name, parent, generation
GONE = "gone"  # the provider was deleted
#: Resource classes were created, renamed or deleted, traits deleted, or writers ended; recorded for NO_PROVIDER.
NAMES = "names"
_STRENGTH = {USAGE: 0, SHAPE: 1, GONE: 2, NAMES: 3}
#: The provider id of changes that concern no provider.  A row (NO_PROVIDER, USAGE) marks a transaction that only
#: recorded events, which bear its number.  Searches ignore it.  It has no separate kind, because workers of earlier
#: releases read the same feed.
NO_PROVIDER = 0

#: Seconds for which a row is kept after its writer's next transaction; a writer's newest row is kept longer.
RETENTION = 600.0
#: Seconds without maintenance after which a writer is ended: the length of its lease.  A writer stops writing after
#: half of this time; a reader that has not read the feed for a quarter of this time reads everything again.
LIFETIME = 4 * 3600.0
#: Seconds between two maintenance runs of a writer.
MAINTENANCE_INTERVAL = 60.0
#: The range of writer ids.  In earlier releases the database assigned lower ids.
_MIN_ID, _MAX_ID = 2**20, 2**30


class Writer:
    """A numbered sequence of transactions; used by one transaction at a time."""

    def __init__(self, writer_id: int) -> None:
        self.id = writer_id
        #: The sequence number of its newest committed transaction.
        self.seq = 0
        #: The times, by the monotonic clock, of the last renewal of the lease and of the last attempt at maintenance.
        self.seen = self.maintained = time.monotonic()
        #: Times of maintenance, and the newest sequence number at each.
        self._marks: collections.deque[tuple[float, int]] = collections.deque()

    def rows(self, changes: Mapping[int, str]) -> list[dict[str, Any]]:
        """Return the feed rows of the current transaction, whose number is ``seq + 1``.

        ``RECORD`` inserts them, as the transaction's last statement before COMMIT.

        Args:
            changes: The kind of change by provider id.
        """
        return [
            {"writer_id": self.id, "seq": self.seq + 1, "provider_id": provider_id, "what": kind}
            for provider_id, kind in sorted(changes.items())
        ]

    def maintenance_due(self) -> bool:
        """Whether MAINTENANCE_INTERVAL has passed since the last maintenance."""
        return time.monotonic() - self.maintained > MAINTENANCE_INTERVAL

    def maintain(self, engine: Engine) -> datetime.datetime | None:
        """Renew this writer's lease, and delete its old rows.

        Returns:
            The cutoff for ``expired_writers.end``: the leases of writers last seen before it have expired.  None if no
            lease has expired, or if this writer has been ended.
        """
        self.maintained = now = time.monotonic()
        with engine.begin() as connection:
            if connection.execute(_RENEW, {"writer": self.id}).rowcount != 1:
                return None  # the writer has been ended; its next transaction fails and drops it
            self._prune(connection, now)
            database_now: datetime.datetime = connection.execute(_SEEN_AT, {"writer": self.id}).scalar_one()
            cutoff = database_now - datetime.timedelta(seconds=LIFETIME)
            some_expired = connection.execute(EXPIRED, {"cutoff": cutoff}).first() is not None
        self.seen = now
        return cutoff if some_expired else None

    def _prune(self, connection: Connection, now: float) -> None:
        """Delete the rows superseded at least RETENTION seconds ago, except for the newest row of that time."""
        self._marks.append((now, self.seq))
        while self._marks and self._marks[0][0] < now - RETENTION:
            _, newest = self._marks.popleft()
            connection.execute(PRUNE, {"writer": self.id, "newest": newest})


class Writers:
    """The pool of writers of one process; last in, first out, so that few are in use."""

    def __init__(self) -> None:
        self._by_process: dict[int, collections.deque[Writer]] = {}

    @property
    def idle(self) -> collections.deque[Writer]:
        """The writers of this process that no transaction uses; a forked child does not share its parent's."""
        return self._by_process.setdefault(os.getpid(), collections.deque())

    def check_out(self, engine: Engine) -> Writer:
        """Return an idle writer, or a new one, which is registered in a separate transaction."""
        with contextlib.suppress(IndexError):
            while True:
                writer = self.idle.pop()
                # A writer whose lease expires soon is dropped; another process will end it.
                if time.monotonic() - writer.seen < LIFETIME / 2:
                    return writer
        # Random, because a database that has lost its newest commits would assign a sequential id twice.
        writer_id = _MIN_ID + secrets.randbelow(_MAX_ID - _MIN_ID)
        with engine.begin() as connection:
            connection.execute(sa.insert(change_writers).values(id=writer_id))
        return Writer(writer_id)

    def check_in(self, writer: Writer) -> None:
        """Return a writer to the pool.  A writer whose transaction has an unknown outcome must be dropped instead."""
        self.idle.append(writer)

    def drop_idle(self) -> None:
        """Drop all idle writers: the database may have lost their newest transactions."""
        self.idle.clear()


def stronger_change(first: str | None, second: str) -> str:
    """Return the stronger of two changes of one provider, which implies the other."""
    return second if first is None or _STRENGTH[second] > _STRENGTH[first] else first


#: The INSERT of the feed rows of a transaction.
RECORD = CompiledInsert(provider_changes, "writer_id", "seq", "provider_id", "what")
#: The time at which a writer was last seen; right after _RENEW, the current time of the database.
_SEEN_AT = sa.select(change_writers.c.seen_at).where(change_writers.c.id == sa.bindparam("writer"))
_RENEW = (
    sa.update(change_writers)
    .where(change_writers.c.id == sa.bindparam("writer"))
    .values(seen_at=sa.func.current_timestamp())
)
#: Ids of the writers last seen before a cutoff.
EXPIRED = sa.select(change_writers.c.id).where(change_writers.c.seen_at < sa.bindparam("cutoff")).order_by("id")
_OF_WRITER = provider_changes.c.writer_id == sa.bindparam("writer")
#: The DELETE of a writer's rows with lower numbers than ``newest``.
PRUNE = sa.delete(provider_changes).where(_OF_WRITER, provider_changes.c.seq < sa.bindparam("newest"))
