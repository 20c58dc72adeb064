"""Sweeps give back what all expired leases hold, in transactions of bounded size.

There is no daemon.  Searches, claims, workers after a request, and a command for operators do it.  Concurrent sweeps
share the work, since each skips the consumers that another one has locked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from placement import errors, signals
from placement.db.database import Database
from placement.db.engine import driver_errors
from placement.db.writes import retry
from placement.objects.claims import leases, release

LOG = logging.getLogger(__name__)

#: The most seconds that a worker spends on a sweep after a reply.
_LONGEST = 5.0
#: Seconds until the next sweep in the process, after one that failed or found everything due locked.
_PAUSE = 5.0
#: Attempts at one transaction.
ATTEMPTS = 3
#: A sweep ends after this many transactions in a row that find all due consumers locked.
MOST_IDLE = 50


def sweep(
    database: Database,
    most: int | None = None,
    until: float | None = None,
    given_back: Callable[[int], object] = lambda _: None,
) -> bool:
    """Give back what expired leases hold.

    Args:
        database: Where they are.
        most: The largest number of leases; None for all.
        until: The time, by the monotonic clock, after which no further transaction begins; the first always does.
            None for no limit.
        given_back: Called after each transaction with the number of leases that it ended.

    Returns:
        Whether no more are due.

    Raises:
        Failure: As for ``Database.write``; what was given back before stays so.
    """
    idle, begun = 0, False
    while database.read(leases.any_expired):
        if most == 0 or idle == MOST_IDLE or (begun and until is not None and time.monotonic() > until):
            return False
        begun = True
        batch = release.BATCH if most is None else min(most, release.BATCH)
        ended = database.write(lambda db: leases.give_back(db, batch), attempts=ATTEMPTS)  # noqa: B023
        given_back(ended)
        if most is not None:
            most -= ended
        idle = 0 if ended else idle + 1
        if idle:
            # Other transactions have locked everything that is due.
            retry.pause(idle)
    return True


class LeaseSweeper:
    """Sweeps on behalf of requests, without failing any or holding one up for long.  Shared by all threads."""

    def __init__(self, database: Database, longest: float = _LONGEST) -> None:
        """Prepare sweeps that take at most ``longest`` seconds."""
        self._database = database
        self._longest = longest
        #: The time, by the monotonic clock, before which this process does not sweep.
        self._not_before = 0.0
        #: Whether the last sweep ran out of time before it had given back everything; the next one gives back more.
        self.is_behind = False

    def sweep(self) -> bool:
        """Give back what expired leases hold, within the time limit; return whether it tried."""
        self.is_behind = False
        now = time.monotonic()
        if now < self._not_before:
            return False
        ended: list[int] = []
        try:
            due = self._database.read(leases.count_expired)
            signals.leases_due(due)
            if due and not sweep(self._database, until=now + self._longest, given_back=ended.append):
                self.is_behind = any(ended)
                if not self.is_behind:
                    self._not_before = time.monotonic() + _PAUSE
                signals.leases_due(self._database.read(leases.count_expired))
            elif due:
                signals.leases_due(0)
        except Exception as error:
            # The database may not accept writes.  Searches are answered all the same, without this room.
            self._not_before = time.monotonic() + _PAUSE
            reason = driver_errors.cause_of(error) if isinstance(error, errors.Failure) else None
            LOG.warning("Expired leases are not given back: %s", reason or error)
        return True
