"""The live index: the current snapshot of a process, refreshed on demand."""

from __future__ import annotations

import datetime
import logging
import os
import threading
import time
from collections.abc import Callable

from placement import errors, signals
from placement.db import feed
from placement.db.database import Database
from placement.db.engine import bulkhead
from placement.db.shared_run import SharedRun
from placement.db.upkeep import standard
from placement.index import memory
from placement.index.consumer_counts import ConsumerCounts
from placement.index.position import MAX_GAP, Position
from placement.index.refresh import Base, Contents, FollowError, Indexed, agrees, bounds, follow, refresh_index
from placement.index.snapshot import Snapshot
from placement.index.store import IndexStore
from placement.objects.claims.lease_sweep import LeaseSweeper

LOG = logging.getLogger(__name__)

#: Maximum number of seconds that a search spends on releasing expired leases.
SWEEP_TIME_LIMIT = 0.25
#: Maximum number of providers compared with the database at once; few, because a request waits for the comparison.
SECTION = 10_000
#: Seconds to wait for another worker that reads the database, before this one reads it as well.
LOCK_TIME_LIMIT = 60.0
#: Seconds between checks whether a renewal is due, or another worker has made one.
_RENEWAL_INTERVAL = 1.0
#: Seconds until the next attempt after a failure.
_FAILURE_PAUSE = 600.0
#: The arrays are renewed if the number of changed rows exceeds _MIN_CHANGES, and the number of providers divided by
#: _PROVIDERS_PER_CHANGE.
_MIN_CHANGES = 2000
_PROVIDERS_PER_CHANGE = 32
#: Ages at which a file is replaced, so that a worker that starts can follow the feed from its position: the feed keeps
#: the rows of an active writer for ``feed.RETENTION``, and a position can be followed for ``MAX_GAP``.
_CHANGED_AGE = datetime.timedelta(seconds=feed.RETENTION / 2)
_UNCHANGED_AGE = MAX_GAP / 2


class LiveIndex:
    """The current snapshot of a database, for all threads.

    The snapshot that ``current`` returns includes every commit of any process before the call: once a worker has
    responded to a client's write, the client finds the write at every other worker (linearizability).  The first call
    reads the index file of the host, or the whole database.

    Expired leases are released first, so that their resources are free in the snapshot.  Some are left if there are
    many (``has_leases_left``), or if other transactions have locked them; all are left if the database accepts no
    writes.
    """

    def __init__(self, database: Database, verify_interval: float = 0, store: IndexStore | None = None) -> None:
        """Create an index without a snapshot; the first search reads it.

        Args:
            database: The database of the providers.
            verify_interval: Seconds within which the whole index is compared once with the database; 0 disables this.
            store: The files that the workers of a host share; None if each keeps the index in its own memory.
        """
        self._database = database
        self._verify_interval = verify_interval
        self._verified_at, self._section = time.monotonic(), 0
        self._store = store or IndexStore(None)
        self._indexed: Indexed | None = None
        #: A thread that renews the arrays, and the process in which it runs.
        self._renewal: threading.Thread | None = None
        self._renewing_process = 0
        self._next_renewal = 0.0
        #: The result of the thread, which the next refresh uses, and the value of ``_readings`` when the thread began.
        #: If the database has been read since, because the index differed from it, the result is discarded.
        self._renewed: tuple[Indexed, int] | None = None
        self._readings = 0
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
        """Return a snapshot of the current state, or raise DatabaseUnavailable or DatabaseBusy.

        The caller must not be a part of a refresh (``is_refreshing``).
        """
        self._shared.run()
        assert self._indexed is not None
        return self._indexed.snapshot

    @property
    def problem(self) -> str | None:
        """The reason why the directory of the index files is not used at present; None if no reason is known."""
        return self._store.problem

    @property
    def is_refreshing(self) -> bool:
        """Whether the calling thread is refreshing the index, for example in a write that releases expired leases."""
        return self._shared.is_running_here

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
        if before is not None and self._indexed.base is not before.base:
            self.consumers.rebase(self._indexed.snapshot)
        _publish(time.perf_counter() - began, self._indexed, before)
        self._renew()

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
            return self._load("start")
        # Before a comparison: in a large cloud, a worker with few searches makes one with each of them.
        if (renewed := self._follow_renewed()) is not None:
            return renewed
        sections = 1 + len(indexed.snapshot) // SECTION
        if self._verify_interval and time.monotonic() - self._verified_at > self._verify_interval / sections:
            return self._verify(indexed, sections)
        if not self._found_changes:
            # Usually nothing has changed; one statement shows that.
            position = self._database.read(Position.now)
            if position.follows(indexed.position) and position.newest == indexed.position.newest:
                return indexed._replace(position=position)
        return self._follow(indexed)

    def _follow(self, indexed: Indexed) -> Indexed:
        """Return the index with all changes."""
        try:
            newer = self._database.snapshot(lambda db: follow(db, indexed))
        except FollowError as error:
            return self._reload(error)
        self._found_changes = newer.snapshot is not indexed.snapshot
        return newer

    def _follow_renewed(self) -> Indexed | None:
        """Return the index of renewed arrays with all changes; None without usable arrays."""
        if self._renewed is None:
            return None
        renewed, readings = self._renewed
        newer = None
        if readings == self._readings:
            try:
                newer = self._database.snapshot(lambda db: follow(db, renewed))
            except FollowError as error:
                # Another worker may have read a newer state than this one can, from another server of the database.
                LOG.info("The renewed index is not used: %s.", error)
        self._renewed = None
        return newer

    def _verify(self, indexed: Indexed, sections: int) -> Indexed:
        """Refresh the index, and compare its next section with the database."""
        section = self._section = (self._section + 1) % sections
        try:
            newer, is_equal = self._database.snapshot(
                lambda db: ((now := follow(db, indexed)), agrees(db, now, section, sections))
            )
        except FollowError as error:
            return self._reload(error)
        self._verified_at = time.monotonic()
        if is_equal:
            return newer
        LOG.error(
            "The index differs from the database, which another Placement or an operator has changed without the "
            "change feed: reloading the index."
        )
        with self._store.lock(newer.position.instance, LOCK_TIME_LIMIT, self._probe) as is_locked:
            indexed = self._read("differs", is_locked)
        memory.release()
        return indexed

    # --- reading all providers: from the file of the host, or from the database ---

    def _reload(self, error: FollowError) -> Indexed:
        LOG.log(logging.ERROR if error.cause == "out_of_step" else logging.INFO, "%s: reloading the index.", error)
        return self._load(error.cause)

    def _load(self, cause: signals.ReloadCause) -> Indexed:
        """Load the index from the file, or from the database; meanwhile the other workers of the host wait."""
        instance = self._database.read(Position.now).instance
        indexed = self._load_file(instance)
        if indexed is None:
            with self._store.lock(instance, LOCK_TIME_LIMIT, self._probe) as is_locked:
                # While this worker waited, another one may have read the database.
                if self._store.has_changed(instance):
                    indexed = self._load_file(instance)
                indexed = indexed or self._read(cause, is_locked)
        memory.release()
        return indexed

    def _probe(self) -> None:
        """Query the database during a wait, which thus counts as stalled only if the database does not respond."""
        self._database.read(Position.now)
        bulkhead.note_progress()

    def _load_file(self, instance: str | None) -> Indexed | None:
        """Return the index of the file with all changes; None if there is no file that can be used."""
        stored = self._store.load(instance)
        if stored is None:
            return None
        try:
            indexed = self._database.snapshot(lambda db: follow(db, stored))
        except FollowError as error:
            LOG.info("The index file is not used: %s.", error)
            return None
        LOG.info("Use the index file, with %d providers.", len(indexed.snapshot))
        return indexed

    def _read(self, cause: signals.ReloadCause, is_locked: bool) -> Indexed:
        """Return the index of the database, in a new file if this worker has locked it."""
        self._readings += 1
        signals.reloaded(cause)
        base = Base.build(self._database.snapshot(Contents.read))
        bulkhead.note_progress()  # each of these steps takes seconds in a large cloud
        indexed = self._store.save(base) if is_locked else base.to_index()
        bulkhead.note_progress()
        return indexed

    # --- renewing the arrays, in which many changes have accumulated ---

    def _renew(self) -> None:
        """Begin to write a new file, or to read the file that another worker has written, if that is due."""
        indexed = self._indexed
        assert indexed is not None
        if self._renewed is not None or time.monotonic() < self._next_renewal or self._is_renewing():
            return
        self._next_renewal = time.monotonic() + _RENEWAL_INTERVAL
        instance = indexed.position.instance
        if self._store.has_changed(instance) or self._is_due(indexed):
            renewal = threading.Thread(target=self._run_renewal, args=[indexed, self._readings], daemon=True)
            try:
                renewal.start()
            except RuntimeError as error:  # the limit of threads
                LOG.warning("The arrays of the index cannot be renewed; the next attempt is in ten minutes: %s.", error)
                self._next_renewal = time.monotonic() + _FAILURE_PAUSE
            else:
                self._renewal, self._renewing_process = renewal, os.getpid()

    def _is_renewing(self) -> bool:
        # In a child that was forked during a renewal, the thread does not run, but may seem to.
        return self._renewal is not None and self._renewing_process == os.getpid() and self._renewal.is_alive()

    def _is_due(self, indexed: Indexed) -> bool:
        snapshot, position, base = indexed
        if snapshot.changes > max(_MIN_CHANGES, len(snapshot) // _PROVIDERS_PER_CHANGE):
            return True
        limit = _CHANGED_AGE if position.newest != base.newest else _UNCHANGED_AGE
        return position.at - base.at > limit and self._store.is_usable(position.instance)

    def _run_renewal(self, indexed: Indexed, readings: int) -> None:
        try:
            renewed = self._renewed_index(indexed)
        except Exception:
            LOG.exception("The arrays of the index could not be renewed; the next attempt is in ten minutes.")
            self._next_renewal = time.monotonic() + _FAILURE_PAUSE
            return
        if renewed is not None:
            self._renewed = renewed, readings
        memory.trim()

    def _renewed_index(self, indexed: Indexed) -> Indexed | None:
        """Return the index of a new file, written by this worker or another one; None while another one writes it."""
        instance = indexed.position.instance
        with self._store.lock(instance, 0) as is_locked:
            if self._store.has_changed(instance):
                return self._store.load(instance)
            if is_locked or not self._store.is_usable(instance):
                base = Base.build(Contents.of(indexed))
                return self._store.save(base) if is_locked else base.to_index()
        return None


def _publish(seconds: float, now: Indexed, before: Indexed | None) -> None:
    if signals.refreshed.connected:
        missed = 0 if before is None else now.position.transactions_since(before.position)
        signals.refreshed(seconds, missed, len(now.snapshot))
    if signals.amounts_changed.connected and (before is None or now.snapshot is not before.snapshot):
        signals.amounts_changed(now.snapshot.totals())
