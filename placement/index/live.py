"""The index of one process: the newest snapshot, and who brings it up to date."""

from __future__ import annotations

import logging
import os
import threading
import time

from placement import errors, signals
from placement.db import standard
from placement.db.database import Database
from placement.index.position import Position
from placement.index.refresh import Indexed, agrees, loaded, refreshed
from placement.index.snapshot import Snapshot

LOG = logging.getLogger(__name__)

#: Providers that are compared with the database at once, so that no request waits long for it.
_PART = 10_000


class LiveIndex:
    """Gives snapshots of a database, each as new as the moment when it is asked for; shared by all threads.

    All that was committed before the call is in the snapshot, by whichever process: a client that was answered by one
    worker finds its writes at every other.  The first call reads the whole database.
    """

    def __init__(self, database: Database, verify_interval: float = 0) -> None:
        """:param verify_interval: seconds after which the index is compared with the database; 0: never."""
        self._database = database
        self._verify_interval = verify_interval
        self._verified, self._part = time.monotonic(), 0
        self._indexed: Indexed | None = None
        self._locks: dict[int, threading.Lock] = {}
        #: The numbers of the last refresh that was begun, and of the last that has ended.
        self._begun = self._ended = 0
        self._failure: errors.Failure | None = None
        #: Whether something had moved the last time; then most likely it has again.
        self._busy = False

    @property
    def _lock(self) -> threading.Lock:
        """This process's: a fork's child has its parent's snapshot, but not the thread that may have held the lock."""
        return self._locks.setdefault(os.getpid(), threading.Lock())

    @signals.timed("index")
    def current(self) -> Snapshot:
        """All providers as of now; raises DatabaseUnavailable, or DatabaseBusy."""
        begun = self._begun
        # Who waits for a refresh of another thread waits for the database.
        with self._database.bulkhead.admit(), self._lock:
            # A refresh that was begun before we came may have missed what we must see; any later one will do.
            if self._ended <= begun:
                self._renew()
            if self._failure is not None:
                raise type(self._failure)() from self._failure
            assert self._indexed is not None
            return self._indexed.snapshot

    def _renew(self) -> None:
        self._begun += 1
        began, before = time.perf_counter(), self._indexed
        try:
            self._indexed, self._failure = self._renewed(), None
            _tell(time.perf_counter() - began, self._indexed, before)
            if self._indexed.position.instance is None:
                self._identify()
        except errors.Unavailable as failure:
            # Who waited meanwhile need not wait for the same once more.
            self._failure = failure
        self._ended = self._begun

    def _identify(self) -> None:
        """Give the database an identity again, and the standard rows if they are lost, too.

        Without one the feed cannot be followed, and every search reads everything.
        """
        try:
            standard.insert(self._database)
        except (errors.Failure, RuntimeError) as error:
            LOG.error("The database has no identity, and cannot be given one: %s", error)

    def _renewed(self) -> Indexed:
        indexed = self._indexed
        if indexed is None:
            self._verified = time.monotonic()
            signals.reloaded("start")
            return self._database.snapshot(loaded)
        parts = 1 + len(indexed.snapshot) // _PART
        if self._verify_interval and time.monotonic() - self._verified > self._verify_interval / parts:
            return self._verify(indexed, parts)
        if not self._busy:
            # Mostly nothing has moved, which one statement tells.
            position = self._database.read(Position.now)
            if position.follows(indexed.position) and position.newest == indexed.position.newest:
                return Indexed(indexed.snapshot, position)
        fresh = self._database.snapshot(lambda db: refreshed(db, indexed))
        self._busy = fresh.snapshot is not indexed.snapshot
        return fresh

    def _verify(self, indexed: Indexed, parts: int) -> Indexed:
        part = self._part = (self._part + 1) % parts
        fresh, agreed = self._database.snapshot(
            lambda db: ((now := refreshed(db, indexed)), agrees(db, now, part, parts))
        )
        self._verified = time.monotonic()
        if agreed:
            return fresh
        LOG.error(
            "The index differs from the database: something writes to it that leaves nothing in the change feed "
            "(another Placement, or a hand).  Reading everything again."
        )
        signals.reloaded("differs")
        return self._database.snapshot(loaded)


def _tell(seconds: float, now: Indexed, before: Indexed | None) -> None:
    if signals.refreshed.connected:
        missed = 0 if before is None else now.position.transactions_since(before.position)
        signals.refreshed(seconds, missed, len(now.snapshot))
