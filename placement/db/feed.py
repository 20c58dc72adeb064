"""The feed: which providers each committed transaction changed.

A *writer* is used by one transaction at a time, so its transactions commit in the order of their numbers, and a reader
that has seen number n of a writer has seen all before.  Every write transaction that changes what a search may see
leaves a row per provider under its writer and number.  No row is shared between writers: the feed adds no contention.

A writer and a number name one transaction for all time: the id of a writer is random and a number that may have been
committed is never used again, even if the database has lost its newest commits.  Rows are cleared away from the oldest
on.  So a reader that finds number n, where it stands, has lost nothing and will find all after it (docs/adr/0004).
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import secrets
import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from placement.db.tables import change_writers, provider_changes

#: What changed, from least to most; the strongest wins within one transaction.
USAGE = "usage"  # allocations on the provider
SHAPE = "shape"  # anything else about it: inventory, traits, aggregates, name, parent, generation
GONE = "gone"  # the provider was deleted
NAMES = "names"  # resource classes were made, renamed or deleted, or traits deleted; under provider 0
_STRENGTH = {USAGE: 0, SHAPE: 1, GONE: 2, NAMES: 3}
NO_PROVIDER = 0

#: Seconds that rows are kept after the next number; the newest of a writer longer than that.
RETENTION = 600.0
#: Seconds after which a writer that was not seen is ended.  It stops writing after half of that, and a reader that did
#: not look for a quarter must read everything again.
LIFETIME = 4 * 3600.0
_TIDY_INTERVAL = 60.0
#: Ids of writers.  Those below were counted by the database, as older programs still have them.
_LOWEST, _HIGHEST = 2**20, 2**30


class Writer:
    """A numbered sequence of transactions; in the hands of one transaction at a time."""

    def __init__(self, writer_id: int) -> None:
        self.id = writer_id
        #: The number of its newest committed transaction.
        self.seq = 0
        self.seen = self.tidied = time.monotonic()
        self._marks: collections.deque[tuple[float, int]] = collections.deque()

    def record(self, connection: Connection, changes: dict[int, str]) -> int:
        """The number of the running transaction, whose rows are left as its last statement before COMMIT."""
        seq = self.seq + 1
        rows = [
            {"writer_id": self.id, "seq": seq, "provider_id": provider_id, "what": what}
            for provider_id, what in sorted(changes.items())
        ]
        connection.execute(sa.insert(provider_changes), rows)
        return seq

    def tidy_due(self) -> bool:
        return time.monotonic() - self.tidied > _TIDY_INTERVAL

    def tidy(self, engine: Engine) -> None:
        """Say that this writer lives; clear its old rows, and end the writers that have not been seen for long."""
        self.tidied = now = time.monotonic()
        with engine.begin() as connection:
            if connection.execute(_SEEN, {"writer": self.id}).rowcount != 1:
                return  # ended, which its next transaction will find out
            self._prune(connection, now)
            here: datetime.datetime = connection.execute(_CLOCK, {"writer": self.id}).scalar_one()
            dead = here - datetime.timedelta(seconds=LIFETIME)
            for writer_id in connection.execute(_DEAD, {"dead": dead}).scalars().all():
                _end(connection, writer_id, dead)
        self.seen = now

    def _prune(self, connection: Connection, now: float) -> None:
        """Clear the rows that had a successor long ago: a reader that stands at the newest finds it."""
        self._marks.append((now, self.seq))
        while self._marks and self._marks[0][0] < now - RETENTION:
            _, newest_then = self._marks.popleft()
            connection.execute(_PRUNE, {"writer": self.id, "newest": newest_then})


def _end(connection: Connection, writer_id: int, dead: datetime.datetime) -> None:
    """Take a writer away that is still not seen; its last number stays, under its id made negative.

    The lock waits for a transaction of the writer that is about to commit, so the number is the last there will be:
    from now on the foreign key refuses it.  A reader that knows less than this number has missed something.
    """
    if connection.execute(_LOCK, {"writer": writer_id, "dead": dead}).first() is None:
        return
    if writer_id > 0:
        newest = connection.execute(_NEWEST, {"writer": writer_id}).scalar() or 0
        connection.execute(_PRUNE, {"writer": writer_id, "newest": newest})
        connection.execute(sa.insert(change_writers).values(id=-writer_id))
        connection.execute(_MOVE, {"writer": writer_id, "heir": -writer_id})
    else:  # has been away for long itself
        connection.execute(_CLEAR, {"writer": writer_id})
    connection.execute(_FORGET, {"writer": writer_id})


class Writers:
    """The writers of one process, lent to transactions; last in, first out, so that few are in use."""

    def __init__(self) -> None:
        self._by_process: dict[int, collections.deque[Writer]] = {}

    @property
    def idle(self) -> collections.deque[Writer]:
        """Those of this process that no transaction uses; a fork's child leaves its parent's alone."""
        return self._by_process.setdefault(os.getpid(), collections.deque())

    def borrow(self, engine: Engine) -> Writer:
        """A writer that no other transaction uses; made, in a transaction of its own, if none is idle."""
        with contextlib.suppress(IndexError):
            while True:
                writer = self.idle.pop()
                # Others will clear away what was not seen for long: leave it to them.
                if time.monotonic() - writer.seen < LIFETIME / 2:
                    return writer
        # A database that has lost its newest commits counts again from where it was: it would give an id twice.
        writer_id = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST)
        with engine.begin() as connection:
            connection.execute(sa.insert(change_writers).values(id=writer_id))
        return Writer(writer_id)

    def give_back(self, writer: Writer) -> None:
        """Only after its transaction has surely ended; a writer whose COMMIT went unanswered is dropped instead."""
        self.idle.append(writer)

    def drop_idle(self) -> None:
        """Have the next transactions use new writers: the database may not remember what these have committed."""
        self.idle.clear()


def stronger(one: str | None, other: str) -> str:
    """The change that includes both."""
    return other if one is None or _STRENGTH[other] > _STRENGTH[one] else one


#: What the database's clock said when this writer was last seen, which is just now.
_CLOCK = sa.select(change_writers.c.seen_at).where(change_writers.c.id == sa.bindparam("writer"))
_SEEN = (
    sa.update(change_writers)
    .where(change_writers.c.id == sa.bindparam("writer"))
    .values(seen_at=sa.func.current_timestamp())
)
_DEAD = sa.select(change_writers.c.id).where(change_writers.c.seen_at < sa.bindparam("dead")).order_by("id")
_THIS = change_writers.c.id == sa.bindparam("writer")
_LOCK = sa.select(change_writers.c.id).where(_THIS, change_writers.c.seen_at < sa.bindparam("dead")).with_for_update()
_FORGET = sa.delete(change_writers).where(_THIS)
_OF_THIS = provider_changes.c.writer_id == sa.bindparam("writer")
_NEWEST = sa.select(sa.func.max(provider_changes.c.seq)).where(_OF_THIS)
_PRUNE = sa.delete(provider_changes).where(_OF_THIS, provider_changes.c.seq < sa.bindparam("newest"))
_MOVE = sa.update(provider_changes).where(_OF_THIS).values(writer_id=sa.bindparam("heir"))
_CLEAR = sa.delete(provider_changes).where(_OF_THIS)
