"""The history of a database: recording, ordering, pruning and sampling (docs/adr/0042)."""

from __future__ import annotations

import datetime
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from oslo_config import cfg
from sqlalchemy.engine import Connection

from placement import errors
from placement.db.database import Database
from placement.db.engine import driver_errors
from placement.db.shared_run import SharedRun
from placement.db.upkeep.sweep import Swept
from placement.db.writes import retry
from placement.extensions.v1 import signals
from placement.extensions.v1.history import event, order, pruning, sampling
from placement.extensions.v1.history.notes import EventNotes
from placement.extensions.v1.history.tables import events
from placement.extensions.v1.history.watch import EventWatch
from placement.index.live import LiveIndex

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")

#: The pause after removing a batch, as a multiple of the time that the removal took.  It leaves the worker and the
#: database to requests.
_PAUSE_FACTOR = 4


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """Options of ``[history]``.

    Attributes:
        enabled: Whether to record events and to take usage samples.
        retention_days: The maximum age of events and samples.
        max_events: The maximum number of events.
        max_undone_events: The maximum number of events to undo for a past state.
    """

    enabled: bool = True
    retention_days: int = 30
    max_events: int = 20_000_000
    max_undone_events: int = 100_000


def history_of(database: Database) -> EventHistory:
    """Return the history that is attached to a database."""
    assert isinstance(database.recorder, EventHistory)
    return database.recorder


def attach(database: Database, conf: cfg.ConfigOpts, threads: int | None) -> None:
    """Attach a history with the options of ``[history]`` to a database.

    Args:
        threads: The number of threads that serve requests; None if unknown.
    """
    group = conf.history
    settings = HistorySettings(group.enabled, group.retention_days, group.max_events, group.max_undone_events)
    history = EventHistory(settings, database)
    history.watch.max_waiting = _max_waiting(group.max_waiting_requests, threads)
    database.recorder = history


def _max_waiting(configured: int | None, threads: int | None) -> int:
    """Return the number of requests that may wait for events.

    By default, it is a quarter of the threads, but at least one; with a single thread, none may wait.
    """
    if configured is not None:
        return int(configured)
    if threads is None:
        return 1
    return 0 if threads == 1 else max(1, threads // 4)


def remove_old_events(database: Database) -> list[Swept]:
    """Order the events, and remove the events that exceed the limits."""
    history = history_of(database)
    history.order()
    return [Swept(events.name, history.prune(), 0)]


class EventHistory:
    """The history of a database.

    A process that records no events still orders and prunes the events of other processes.  A process without an
    index takes no usage samples.
    """

    def __init__(self, settings: HistorySettings, database: Database) -> None:
        self.settings = settings
        #: The index of the process; None in commands.
        self.index: LiveIndex | None = None
        self._database = database
        self._ordering = SharedRun(database, lambda: order.assign_positions(database))
        self._maintained = threading.Lock()
        #: The time of the next removal of old events, by the monotonic clock.
        self._next_batch = math.inf
        #: The waiting requests of this process.
        self.watch = EventWatch(lambda: self.read(event.newest_position))

    def notes(self) -> EventNotes | None:
        """Return the notes of a new transaction; None if this process records no events."""
        return EventNotes() if self.settings.enabled else None

    def order(self) -> None:
        """Assign a position to each committed event; failures as for ``Database.write``."""
        self._ordering.run()

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run ``work(db)`` in a state where each event committed before this call has its position.

        This is one transaction unless events have to be ordered first; failures as for ``Database.write``.
        """
        result = self._database.snapshot(lambda db: None if order.is_behind(db) else (work(db),))
        if result is None:
            self.order()
            return self._database.snapshot(work)
        return result[0]

    def maintain(self) -> bool:
        """Order events, begin to prune them, and take a usage sample; return False if another thread orders them.

        The writes of this method call it again if their feed writer is due for maintenance; that call returns False.
        """
        if not self._maintained.acquire(blocking=False):
            return False
        try:
            # Skip this if another thread is ordering: readers of events order them anyway, and nothing else needs it.
            ordered = self._ordering.try_run()
            self._prune_some()
            # Not during a refresh of the index, for which every search waits.
            if self.settings.enabled and self.index is not None and not self.index.is_refreshing:
                self._sample(self.index)
        finally:
            self._maintained.release()
        return ordered

    def committed(self) -> None:
        """Remove the next batch of old events if it is due; called after each write.

        Pruning thus keeps up with frequent writes, and each write waits for at most one short transaction.
        """
        if time.monotonic() < self._next_batch or not self._maintained.acquire(blocking=False):
            return
        try:
            self._prune_some()
        finally:
            self._maintained.release()

    def _sample(self, index: LiveIndex) -> None:
        """Take the sample of the current interval.  A failure only leaves a gap in charts."""
        try:
            sampling.take(self._database, index)
        except Exception as error:
            LOG.warning("Cannot take a usage sample: %s", driver_errors.message(error))

    def _prune_some(self) -> None:
        """Remove a batch of events, and schedule the next one."""
        began, self._next_batch = time.monotonic(), math.inf
        try:
            if self._remove(attempts=1).more:
                now = time.monotonic()
                self._next_batch = now + _PAUSE_FACTOR * (now - began)
        except errors.Conflict:
            LOG.debug("Another process is removing old events.")
        except Exception as error:
            LOG.warning("Cannot remove old events: %s", driver_errors.message(error))

    def prune(self) -> int:
        """Remove all events that exceed the limits and all old usage samples; return the number of events.

        It pauses between batches, so that other transactions can write.
        """
        removed, pruned = 0, pruning.Pruned(more=True)
        while pruned.more:
            began = time.monotonic()
            pruned = self._remove(attempts=retry.ATTEMPTS)
            removed += pruned.old + pruned.surplus
            if pruned.more:
                time.sleep(time.monotonic() - began)
        return removed

    def _remove(self, attempts: int) -> pruning.Pruned:
        """Remove a batch of events; failures as for ``Database.write``."""
        retention = datetime.timedelta(days=self.settings.retention_days)
        max_events = self.settings.max_events
        pruned = self._database.write(lambda db: pruning.prune(db, retention, max_events), attempts=attempts)
        signals.events_pruned("retention_days", pruned.old)
        signals.events_pruned("max_events", pruned.surplus)
        signals.history_measured(pruned.remaining, pruned.oldest)
        return pruned
