"""The history of a database: its settings, and what keeps it in order and within bounds (docs/adr/0042)."""

from __future__ import annotations

import datetime
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from placement import errors, signals
from placement.db import driver_errors, event_pruning, retry, usage_samples
from placement.db.event_order import NEWEST_POSITION, Sequencer, Used
from placement.db.event_watch import EventWatch
from placement.db.transaction import Transaction

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")

#: Transactions by which one maintenance prunes, at most.
_STEPS = 10


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """The options of ``[history]`` that a database needs.

    Args:
        enabled: Whether writes record events, and samples of the usage are taken.
        retention_days: How old events and samples may be.
        max_events: How many there may be.
    """

    enabled: bool = True
    retention_days: int = 30
    max_events: int = 20_000_000


class EventHistory:
    """Orders and prunes the events of a database, also where this process records none."""

    def __init__(self, settings: HistorySettings, database: Used) -> None:
        self._settings = settings
        self._database = database
        self._sequencer = Sequencer(database)
        self._maintained = threading.Lock()
        #: Requests of this process that wait for events.
        self.watch = EventWatch(self._newest)

    def order(self) -> None:
        """Give a position to each event that is committed; raises as ``Database.write``."""
        self._sequencer.order()

    def _newest(self) -> int:
        """Return the newest position, of all that is committed; 0 if there is none."""
        self.order()
        row = self._database.read(lambda db: db.execute(NEWEST_POSITION).first())
        return 0 if row is None else row.position + row.events - 1

    def maintain(self) -> bool:
        """Order events, prune a few of them, and sample the usage; return False if that is being done already.

        It may be called by one of its own writes, whose writer is due for maintenance.
        """
        if not self._maintained.acquire(blocking=False):
            return False
        try:
            if not self._sequencer.order_unless_busy():
                return False
            self.prune(_STEPS)
            if self._settings.enabled:
                self._sample()
        finally:
            self._maintained.release()
        return True

    def _sample(self) -> None:
        """Take the sample of the present interval; without it a picture has a gap, and nothing else suffers."""
        try:
            at = self._database.read(usage_samples.due)
            if at is not None:
                # The sums are read by themselves: SQLite would have all writes wait for them.
                rows = self._database.read(lambda db: usage_samples.read(db, at))
                self._write(lambda db: usage_samples.insert(db, rows))
        except Exception as error:
            LOG.warning("No sample of the usage was taken: %s", driver_errors.message(error))

    def prune(self, steps: int | None = None) -> int:
        """Remove events that are too old, or too many, and samples of the usage that are too old.

        Args:
            steps: The largest number of transactions; None to remove all of these events.

        Returns:
            The number of events that were removed.
        """
        retention = datetime.timedelta(days=self._settings.retention_days)
        removed, pruned = 0, event_pruning.Pruned(more=True)
        while pruned.more and steps != 0:
            pruned = self._write(lambda db: event_pruning.prune(db, retention, self._settings.max_events))
            removed += pruned.old + pruned.surplus
            signals.events_pruned("retention_days", pruned.old)
            signals.events_pruned("max_events", pruned.surplus)
            signals.history_measured(pruned.left, pruned.oldest)
            steps = None if steps is None else steps - 1
        self._write(lambda db: usage_samples.prune(db, retention))
        return removed

    def _write(self, work: Callable[[Transaction], Result]) -> Result:
        return self._database.write(work, attempts=retry.ATTEMPTS, exhausted=errors.TooManyConflicts)
