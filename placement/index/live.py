"""The live index: the current snapshot of a process, refreshed on demand."""

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
from placement.index.refresh import Indexed, agrees, bounds, load_index, refresh_index
from placement.index.snapshot import Snapshot
from placement.objects.claims.lease_sweep import LeaseSweeper

LOG = logging.getLogger(__name__)

#: Maximum number of seconds that a search spends on releasing expired leases.
SWEEP_TIME_LIMIT = 0.25
#: Maximum number of providers compared with the database at once; few, because a request waits for the comparison.
SECTION = 10_000


class LiveIndex:
    """The current snapshot of a database, for all threads.

    The snapshot that ``current`` returns includes every commit of any process before the call: once a worker has
    responded to a client's write, the client finds the write at every other worker (linearizability).  The first call
    reads the whole database.

    Expired leases are released first, so that their resources are free in the snapshot.  Some are left if there are
    many (``has_leases_left``), or if other transactions have locked them; all are left if the database accepts no
    writes.
    """

    def __init__(self, database: Database, verify_interval: float = 0) -> None:
        """Create an index without a snapshot; the first search reads the database.

        Args:
            database: The database of the providers.
            verify_interval: Seconds within which the whole index is compared once with the database; 0 disables this.
        """
        self._database = database
        self._verify_interval = verify_interval
        self._verified_at, self._section = time.monotonic(), 0
        self._indexed: Indexed | None = None
        self._shared = SharedRun(database, self._refresh)
        #: The time, by the monotonic clock, at which the snapshot was current.
        self._current_at = 0.0
        #: Whether the last refresh found changes; if so, the next one probably does as well.
        self._found_changes = False
        self._leases = LeaseSweeper(database, SWEEP_TIME_LIMIT)
        #: Whether expired leases still hold resources in the newest snapshot because the time for releasing them ran
        #: out; the next refresh releases more.
        self.has_leases_left = False
        #: The number of consumers with allocations on each provider of a snapshot.
        self.consumers = ConsumerCounts(database)

    @signals.timed("index")
    def current(self) -> Snapshot:
        """Return a snapshot of the current state, or raise DatabaseUnavailable or DatabaseBusy."""
        self._shared.run()
        assert self._indexed is not None
        return self._indexed.snapshot

    def recent(self, age: float) -> Snapshot:
        """Return a snapshot that was current at most ``age`` seconds ago, for an optimistic claim."""
        indexed = self._indexed
        if indexed is None or time.monotonic() - self._current_at > age:
            return self.current()
        return indexed.snapshot

    def differences(self, compared: Callable[[int], object]) -> list[tuple[int, int]]:
        """Return the ranges of provider ids (see ``bounds``) in which the index differs from the database.

        The index is not read again, because the indexes of the other workers may also differ.

        Args:
            compared: A callback with the number of providers of each range, once the range is compared.

        Raises:
            DatabaseUnavailable, DatabaseBusy: As for ``current``.
        """
        self.current()
        indexed = self._indexed
        assert indexed is not None
        sections = 1 + len(indexed.snapshot) // SECTION
        different = []
        for number in range(sections):
            if not self._database.snapshot(lambda db: agrees(db, refresh_index(db, indexed), number, sections)):  # noqa: B023
                different.append(bounds(indexed, number, sections))
            compared(SECTION)
        return different

    def _refresh(self) -> None:
        current_at = time.monotonic()
        began, before = time.perf_counter(), self._indexed
        self._indexed = self._refreshed_index()
        if self._indexed.position.instance is None and self._restore_identity():
            self._indexed = self._refreshed_index()
        is_behind = False
        if self._indexed.position.has_expired_leases and self._leases.sweep():
            self._indexed = self._refreshed_index()
            is_behind = self._leases.is_behind
        self.has_leases_left = is_behind
        self._current_at = current_at
        _publish(time.perf_counter() - began, self._indexed, before)

    def _restore_identity(self) -> bool:
        """Insert the identity of the feed and missing standard rows; return whether the feed has an identity.

        Without an identity the feed cannot be followed, and every search reads everything.  The feed may have an
        identity already: a PostgreSQL snapshot that began before the commit of a restore sees no rows in any table.
        """
        LOG.error("The database has no identity, because it is new or was replaced: reloading the index.")
        try:
            standard.insert(self._database)
        except (errors.Failure, RuntimeError) as error:
            LOG.error("The database has no identity, and inserting one failed: %s", error)
            return False
        return True

    def _refreshed_index(self) -> Indexed:
        indexed = self._indexed
        if indexed is None:
            self._verified_at = time.monotonic()
            signals.reloaded("start")
            return self._database.snapshot(load_index)
        sections = 1 + len(indexed.snapshot) // SECTION
        if self._verify_interval and time.monotonic() - self._verified_at > self._verify_interval / sections:
            return self._verify(indexed, sections)
        if not self._found_changes:
            # Usually nothing has changed; one statement shows that.
            position = self._database.read(Position.now)
            if position.follows(indexed.position) and position.newest == indexed.position.newest:
                return Indexed(indexed.snapshot, position)
        newer = self._database.snapshot(lambda db: refresh_index(db, indexed))
        self._found_changes = newer.snapshot is not indexed.snapshot
        return newer

    def _verify(self, indexed: Indexed, sections: int) -> Indexed:
        """Refresh the index, and compare its next section with the database."""
        section = self._section = (self._section + 1) % sections
        newer, agreed = self._database.snapshot(
            lambda db: ((now := refresh_index(db, indexed)), agrees(db, now, section, sections))
        )
        self._verified_at = time.monotonic()
        if agreed:
            return newer
        LOG.error(
            "The index differs from the database, which another Placement or an operator has changed without the "
            "change feed: reloading the index."
        )
        signals.reloaded("differs")
        return self._database.snapshot(load_index)


def _publish(seconds: float, now: Indexed, before: Indexed | None) -> None:
    if signals.refreshed.connected:
        missed = 0 if before is None else now.position.transactions_since(before.position)
        signals.refreshed(seconds, missed, len(now.snapshot))
    if signals.amounts_changed.connected and (before is None or now.snapshot is not before.snapshot):
        signals.amounts_changed(now.snapshot.totals())
