"""The live index: the newest snapshot of a process, refreshed when it is asked for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from placement import errors, signals
from placement.db.database import Database
from placement.db.shared_run import SharedRun
from placement.db.upkeep import standard
from placement.index.consumer_counts import ConsumerCounts
from placement.index.position import Position
from placement.index.refresh import Indexed, agrees, bounds, loaded, refreshed
from placement.index.snapshot import Snapshot
from placement.objects.claims.lease_sweep import LeaseSweeper

LOG = logging.getLogger(__name__)

#: Seconds that a search spends on leases that are over, before it is answered.
LONGEST_SWEEP = 0.25
#: Providers that are compared with the database at once, so that no request waits long for it.
SECTION = 10_000


class LiveIndex:
    """Gives current snapshots of a database; shared by all threads.

    A snapshot has everything that any process committed before the call: a client that was answered by one worker finds
    its writes at every other one (linearizability).  The first call reads the whole database.

    What expired leases hold is given back first, so that it is free in the snapshot; if they are many, only a part of
    it (``has_leases_left``).  Where the database takes no writes it is not.
    """

    def __init__(self, database: Database, verify_interval: float = 0) -> None:
        """Read nothing yet.

        Args:
            database: Where the providers are.
            verify_interval: Seconds in which the whole index is compared with the database once; 0 is never.
        """
        self._database = database
        self._verify_interval = verify_interval
        self._verified, self._section = time.monotonic(), 0
        self._indexed: Indexed | None = None
        self._shared = SharedRun(database, self._refresh)
        #: The time, by the monotonic clock, at which the snapshot was current.
        self._current_at = 0.0
        #: Whether the last refresh found changes; then the next one most likely does, too.
        self._changing = False
        self._leases = LeaseSweeper(database, LONGEST_SWEEP)
        #: Whether the newest snapshot lacks room of expired leases that the next one will have.
        self.has_leases_left = False
        #: How many consumers hold something on each provider of a snapshot.
        self.consumers = ConsumerCounts(database)

    @signals.timed("index")
    def current(self) -> Snapshot:
        """Return the snapshot of the current state; raises DatabaseUnavailable or DatabaseBusy."""
        self._shared.run()
        assert self._indexed is not None
        return self._indexed.snapshot

    def recent(self, age: float) -> Snapshot:
        """Return a snapshot that was current at most so many seconds ago, for a guess that is checked later."""
        indexed = self._indexed
        if indexed is None or time.monotonic() - self._current_at > age:
            return self.current()
        return indexed.snapshot

    def differences(self, compared: Callable[[int], object]) -> list[tuple[int, int]]:
        """Return the ranges of provider ids, first and last, in which the index differs from the database.

        Nothing is read again because of it: the other workers' indexes may differ, too.

        Args:
            compared: Called with the number of providers of each range, once it is compared.

        Raises:
            DatabaseUnavailable, DatabaseBusy: As ``current``.
        """
        self.current()
        indexed = self._indexed
        assert indexed is not None
        sections = 1 + len(indexed.snapshot) // SECTION
        found = []
        for number in range(sections):
            if not self._database.snapshot(lambda db: agrees(db, refreshed(db, indexed), number, sections)):  # noqa: B023
                found.append(bounds(indexed, number, sections))
            compared(SECTION)
        return found

    def _refresh(self) -> None:
        current_at = time.monotonic()
        began, before = time.perf_counter(), self._indexed
        self._indexed = self._refreshed()
        if self._indexed.position.instance is None and self._restore_identity():
            self._indexed = self._refreshed()
        is_behind = False
        if self._indexed.position.has_expired_leases and self._leases.sweep():
            self._indexed = self._refreshed()
            is_behind = self._leases.is_behind
        self.has_leases_left = is_behind
        self._current_at = current_at
        _publish(time.perf_counter() - began, self._indexed, before)

    def _restore_identity(self) -> bool:
        """Give the feed an identity again, and insert standard rows that are missing too; return whether it has one.

        Without an identity the feed cannot be followed, and every search reads everything.  It may have one already: a
        snapshot of PostgreSQL that began before the commit of a restore sees none of its rows, in any table.
        """
        LOG.error("A search found a database without identity: it is new, or was replaced.  Reading everything again.")
        try:
            standard.insert(self._database)
        except (errors.Failure, RuntimeError) as error:
            LOG.error("The database has no identity, and cannot be given one: %s", error)
            return False
        return True

    def _refreshed(self) -> Indexed:
        indexed = self._indexed
        if indexed is None:
            self._verified = time.monotonic()
            signals.reloaded("start")
            return self._database.snapshot(loaded)
        sections = 1 + len(indexed.snapshot) // SECTION
        if self._verify_interval and time.monotonic() - self._verified > self._verify_interval / sections:
            return self._verify(indexed, sections)
        if not self._changing:
            # Most often nothing has changed, and one statement shows that.
            position = self._database.read(Position.now)
            if position.follows(indexed.position) and position.newest == indexed.position.newest:
                return Indexed(indexed.snapshot, position)
        fresh = self._database.snapshot(lambda db: refreshed(db, indexed))
        self._changing = fresh.snapshot is not indexed.snapshot
        return fresh

    def _verify(self, indexed: Indexed, sections: int) -> Indexed:
        """Refresh the index, and compare the next section of it with the database."""
        section = self._section = (self._section + 1) % sections
        fresh, agreed = self._database.snapshot(
            lambda db: ((now := refreshed(db, indexed)), agrees(db, now, section, sections))
        )
        self._verified = time.monotonic()
        if agreed:
            return fresh
        LOG.error(
            "The index differs from the database: it was written to without the change feed, "
            "by another Placement or by hand.  Reading everything again."
        )
        signals.reloaded("differs")
        return self._database.snapshot(loaded)


def _publish(seconds: float, now: Indexed, before: Indexed | None) -> None:
    if signals.refreshed.connected:
        missed = 0 if before is None else now.position.transactions_since(before.position)
        signals.refreshed(seconds, missed, len(now.snapshot))
    if signals.amounts_changed.connected and (before is None or now.snapshot is not before.snapshot):
        signals.amounts_changed(now.snapshot.totals())
