"""The feed: which providers each committed transaction changed (docs/adr/0004).

A *writer* numbers its transactions 1, 2, 3, ...  One transaction at a time uses it, so its transactions commit in the
order of their sequence numbers: a reader that has seen number n of a writer has seen all before.  Every transaction
that changes what a search can see inserts a row per provider, under its writer and sequence number.  Writers share no
row, so the feed adds no lock contention.  A reader's position is one sequence number per writer: a vector clock.

A writer and a sequence number name one transaction permanently, even if the database loses its newest commits: writers
have random ids, and a number that may have been committed is not used again.  Old rows are deleted from the lowest
number on.  So a reader that finds the row of its own position has missed nothing, and finds every row after it.
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

#: What changed, in ascending order of strength; one transaction records the strongest for each provider.
USAGE = "usage"  # allocations on the provider
SHAPE = "shape"  # anything else about it: inventory, traits, aggregates, name, parent, generation
GONE = "gone"  # the provider was deleted
#: Resource classes were created, renamed or deleted, traits deleted, or writers ended; recorded for NO_PROVIDER.
NAMES = "names"
_STRENGTH = {USAGE: 0, SHAPE: 1, GONE: 2, NAMES: 3}
#: A row (NO_PROVIDER, USAGE) marks a transaction that only recorded events, which bear its number.  Searches ignore it;
#: USAGE, because workers of earlier releases read the feed, too, and know no other word.
NO_PROVIDER = 0

#: Seconds for which rows are kept after their writer's next number; the newest row of a writer is kept longer.
RETENTION = 600.0
#: Seconds after which a writer that was not maintained is ended: its lease.  It stops writing after half of this time,
#: and a reader that did not look for a quarter of it reads everything again.
LIFETIME = 4 * 3600.0
MAINTENANCE_INTERVAL = 60.0
#: Ids of writers.  Lower ids were assigned by the database, in earlier releases.
_LOWEST, _HIGHEST = 2**20, 2**30


class Writer:
    """A numbered sequence of transactions; used by one transaction at a time."""

    def __init__(self, writer_id: int) -> None:
        self.id = writer_id
        #: The sequence number of its newest committed transaction.
        self.seq = 0
        self.seen = self.maintained = time.monotonic()
        #: Times of maintenance, and the newest sequence number at each.
        self._marks: collections.deque[tuple[float, int]] = collections.deque()

    def rows(self, changes: Mapping[int, str]) -> list[dict[str, Any]]:
        """Return the rows of the running transaction, which has the number after ``seq``; ``RECORD`` inserts them.

        They are inserted by its last statement before COMMIT.

        Args:
            changes: What changed, by the id of the provider.
        """
        return [
            {"writer_id": self.id, "seq": self.seq + 1, "provider_id": provider_id, "what": what}
            for provider_id, what in sorted(changes.items())
        ]

    def maintenance_due(self) -> bool:
        """Whether a minute has passed since the last maintenance."""
        return time.monotonic() - self.maintained > MAINTENANCE_INTERVAL

    def maintain(self, engine: Engine) -> datetime.datetime | None:
        """Renew this writer's lease, and delete its old rows.

        Returns:
            The time since which living writers were seen, for ``expired_writers.end``; None if no lease has expired.
        """
        self.maintained = now = time.monotonic()
        with engine.begin() as connection:
            if connection.execute(_RENEW, {"writer": self.id}).rowcount != 1:
                return None  # the writer was ended; its next transaction fails and drops it
            self._prune(connection, now)
            database_now: datetime.datetime = connection.execute(_SEEN_AT, {"writer": self.id}).scalar_one()
            expired = database_now - datetime.timedelta(seconds=LIFETIME)
            some_expired = connection.execute(EXPIRED, {"expired": expired}).first() is not None
        self.seen = now
        return expired if some_expired else None

    def _prune(self, connection: Connection, now: float) -> None:
        """Delete the rows that had a successor RETENTION seconds ago, so the newest row of that time stays."""
        self._marks.append((now, self.seq))
        while self._marks and self._marks[0][0] < now - RETENTION:
            _, newest_then = self._marks.popleft()
            connection.execute(PRUNE, {"writer": self.id, "newest": newest_then})


class Writers:
    """The pool of writers of one process; last in, first out, so that few are in use."""

    def __init__(self) -> None:
        self._by_process: dict[int, collections.deque[Writer]] = {}

    @property
    def idle(self) -> collections.deque[Writer]:
        """The writers of this process that no transaction uses; a forked child does not use its parent's."""
        return self._by_process.setdefault(os.getpid(), collections.deque())

    def check_out(self, engine: Engine) -> Writer:
        """Return an idle writer; if there is none, insert one in a transaction of its own."""
        with contextlib.suppress(IndexError):
            while True:
                writer = self.idle.pop()
                # A writer that is close to the end of its lease is dropped; others will end it.
                if time.monotonic() - writer.seen < LIFETIME / 2:
                    return writer
        # Random: a database that has lost its newest commits would assign a sequential id a second time.
        writer_id = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST)
        with engine.begin() as connection:
            connection.execute(sa.insert(change_writers).values(id=writer_id))
        return Writer(writer_id)

    def check_in(self, writer: Writer) -> None:
        """Return a writer to the pool, once the outcome of its transaction is known; otherwise it is dropped."""
        self.idle.append(writer)

    def drop_idle(self) -> None:
        """Drop all idle writers: the database may have lost what they committed."""
        self.idle.clear()


def stronger(one: str | None, other: str) -> str:
    """Return the stronger of two changes of one provider, which includes the other."""
    return other if one is None or _STRENGTH[other] > _STRENGTH[one] else one


#: Inserts the rows of a transaction.
RECORD = CompiledInsert(provider_changes, "writer_id", "seq", "provider_id", "what")
#: Right after _RENEW this is the time of the database's clock.
_SEEN_AT = sa.select(change_writers.c.seen_at).where(change_writers.c.id == sa.bindparam("writer"))
_RENEW = (
    sa.update(change_writers)
    .where(change_writers.c.id == sa.bindparam("writer"))
    .values(seen_at=sa.func.current_timestamp())
)
#: Ids of the writers that were not seen since a time.
EXPIRED = sa.select(change_writers.c.id).where(change_writers.c.seen_at < sa.bindparam("expired")).order_by("id")
_OF_THIS = provider_changes.c.writer_id == sa.bindparam("writer")
#: Deletes the rows of a writer before its newest.
PRUNE = sa.delete(provider_changes).where(_OF_THIS, provider_changes.c.seq < sa.bindparam("newest"))
