"""The feed: which providers each committed transaction changed.

A *writer* is used by one transaction at a time, so its transactions commit in the order of their numbers, and whoever
has seen number n of a writer has seen all before.  Every write transaction that changes what a search may see leaves a
row per provider under its writer and number.  No row is shared between writers: the feed adds no contention.

The numbers of a writer have no gaps, and rows are cleared away from the oldest on.  So whoever has seen number n and
finds n + 1 can be sure to find all after it.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
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

#: Seconds that rows are kept; the newest of a writer longer than that.
RETENTION = 600.0
#: Seconds after which a writer that was not seen is forgotten, its last rows with it.  It stops writing after half of
#: that, and a reader that did not look for a quarter must read everything again.
LIFETIME = 4 * 3600.0
_TIDY_INTERVAL = 60.0


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
        """Say that this writer lives; clear its old rows, and the writers that have not been seen for long."""
        self.tidied = now = time.monotonic()
        with engine.begin() as connection:
            if connection.execute(_SEEN, {"writer": self.id}).rowcount != 1:
                return  # forgotten, which its next transaction will find out
            self._marks.append((now, self.seq))
            while self._marks and self._marks[0][0] < now - RETENTION:
                _, old = self._marks.popleft()
                # The newest row stays, to tell readers that there was nothing else.
                connection.execute(_PRUNE, {"writer": self.id, "old": min(old, self.seq - 1)})
            here: datetime.datetime = connection.execute(_CLOCK, {"writer": self.id}).scalar_one()
            dead = here - datetime.timedelta(seconds=LIFETIME)
            for writer_id in connection.execute(_DEAD, {"dead": dead}).scalars().all():
                connection.execute(_PRUNE, {"writer": writer_id, "old": 2**62})
                connection.execute(_FORGET, {"writer": writer_id, "dead": dead})
        self.seen = now


class Writers:
    """The writers of one process, lent to transactions; last in, first out, so that few are in use."""

    def __init__(self) -> None:
        self._by_process: dict[int, collections.deque[Writer]] = {}

    @property
    def idle(self) -> collections.deque[Writer]:
        """Those of this process that nobody uses; a fork's child leaves its parent's alone."""
        return self._by_process.setdefault(os.getpid(), collections.deque())

    def borrow(self, engine: Engine) -> Writer:
        """A writer that nobody else uses; made, in a transaction of its own, if none is idle."""
        with contextlib.suppress(IndexError):
            while True:
                writer = self.idle.pop()
                # Others will clear away what was not seen for long: leave it to them.
                if time.monotonic() - writer.seen < LIFETIME / 2:
                    return writer
        with engine.begin() as connection:
            key = connection.execute(sa.insert(change_writers)).inserted_primary_key
        assert key is not None
        return Writer(key[0])

    def give_back(self, writer: Writer) -> None:
        """Only after its transaction has surely ended; a writer whose COMMIT went unanswered is dropped instead."""
        self.idle.append(writer)


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
_PRUNE = sa.delete(provider_changes).where(
    provider_changes.c.writer_id == sa.bindparam("writer"), provider_changes.c.seq <= sa.bindparam("old")
)
_DEAD = sa.select(change_writers.c.id).where(change_writers.c.seen_at < sa.bindparam("dead"))
_FORGET = sa.delete(change_writers).where(
    change_writers.c.id == sa.bindparam("writer"), change_writers.c.seen_at < sa.bindparam("dead")
)
