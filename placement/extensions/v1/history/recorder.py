"""The history of a database: its settings, and what keeps it in order and within bounds (docs/adr/0042)."""

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

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")

#: After removing a batch of events, the process waits this many times as long as that took, which leaves the rest of
#: its time, and of the database's, to requests.
_PAUSES = 4


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """The options of ``[history]`` that a database needs.

    Args:
        enabled: Whether writes record events, and usage samples are taken.
        retention_days: How old events and samples may be.
        max_events: How many there may be.
        max_undone_events: How many may be undone to show a past state.
    """

    enabled: bool = True
    retention_days: int = 30
    max_events: int = 20_000_000
    max_undone_events: int = 100_000


def of(database: Database) -> EventHistory:
    """Return the history of a database that the extension is attached to."""
    assert isinstance(database.recorder, EventHistory)
    return database.recorder


def attach(database: Database, conf: cfg.ConfigOpts, threads: int | None) -> None:
    """Have the transactions of a database recorded as ``[history]`` says; ``threads`` are those that serve requests."""
    group = conf.history
    settings = HistorySettings(group.enabled, group.retention_days, group.max_events, group.max_undone_events)
    history = EventHistory(settings, database)
    history.watch.most = _most_waiting(group.max_waiting_requests, threads)
    database.recorder = history


def _most_waiting(configured: int | None, threads: int | None) -> int:
    """Return how many requests may wait for events: by default a quarter of the threads, or one of two or three."""
    if configured is not None:
        return int(configured)
    if threads is None:
        return 1
    return 0 if threads == 1 else max(1, threads // 4)


def swept(database: Database) -> list[Swept]:
    """Put events in order, and remove those beyond the limits of the history."""
    history = of(database)
    history.order()
    return [Swept(events.name, history.prune(), 0)]


class EventHistory:
    """Orders and prunes the events of a database, even if this process records none."""

    def __init__(self, settings: HistorySettings, database: Database) -> None:
        self.settings = settings
        self._database = database
        self._ordering = SharedRun(database, lambda: order.put_in_order(database))
        self._maintained = threading.Lock()
        #: When the next batch of old events is to be removed, by the monotonic clock.
        self._next_batch = math.inf
        #: Requests of this process that wait for events.
        self.watch = EventWatch(lambda: self.read(event.newest))

    def notes(self) -> EventNotes | None:
        """Return the notes of a new transaction; None if this process records none."""
        return EventNotes() if self.settings.enabled else None

    def order(self) -> None:
        """Give a position to each committed event; raises like ``Database.write``."""
        self._ordering.run()

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Return what ``work(db)`` returns, in a state where each event committed before the call has its position.

        It is one transaction, unless there is something to put in order; raises like ``Database.write``.
        """
        found = self._database.snapshot(lambda db: None if order.is_behind(db) else (work(db),))
        if found is None:
            self.order()
            return self._database.snapshot(work)
        return found[0]

    def maintain(self) -> bool:
        """Order events, begin to prune them, and sample the usage; return False if another thread orders them.

        It may be called within one of its own writes, if the feed writer of that write is due for maintenance.
        """
        if not self._maintained.acquire(blocking=False):
            return False
        try:
            # Most of the time, polling readers order events anyway; nothing else waits for that.
            ordered = self._ordering.try_run()
            self._prune_some()
            if self.settings.enabled:
                self._sample()
        finally:
            self._maintained.release()
        return ordered

    def committed(self) -> None:
        """Continue what the last maintenance began by removing the next batch, if it is due; called after each write.

        So pruning keeps up with many writes, and each write waits for at most one short transaction.
        """
        if time.monotonic() < self._next_batch or not self._maintained.acquire(blocking=False):
            return
        try:
            self._prune_some()
        finally:
            self._maintained.release()

    def _sample(self) -> None:
        """Take the sample of the current interval; without it a chart has a gap, but nothing else suffers."""
        try:
            sampling.take(self._database)
        except Exception as error:
            LOG.warning("No sample of the usage was taken: %s", driver_errors.message(error))

    def _prune_some(self) -> None:
        """Remove a batch of events, and set when the next one is due."""
        began, self._next_batch = time.monotonic(), math.inf
        try:
            if self._remove(attempts=1).more:
                now = time.monotonic()
                self._next_batch = now + _PAUSES * (now - began)
        except errors.Conflict:
            LOG.debug("Another process is removing old events.")
        except Exception as error:
            LOG.warning("Old events were not removed: %s", driver_errors.message(error))

    def prune(self) -> int:
        """Remove all events that are too old or too many, and usage samples that are too old.

        It pauses between batches, so that others can write.

        Returns:
            The number of events that were removed.
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
        """Remove a batch of events; raises like ``Database.write``."""
        retention = datetime.timedelta(days=self.settings.retention_days)
        most = self.settings.max_events
        pruned = self._database.write(lambda db: pruning.prune(db, retention, most), attempts=attempts)
        signals.events_pruned("retention_days", pruned.old)
        signals.events_pruned("max_events", pruned.surplus)
        signals.history_measured(pruned.left, pruned.oldest)
        return pruned
