"""Sweeps: releasing all expired leases, in transactions of bounded size.

No daemon is needed: sweeps run before searches, in workers after a response, and in a command for operators.  A claim
releases the expired leases on its providers itself (``leases``).  Concurrent sweeps share the work, because each skips
the consumers that another one has locked.
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

#: Maximum duration of a sweep after a response, in seconds.
_TIME_LIMIT = 5.0
#: Seconds between a sweep that failed or found all expired leases locked, and the next sweep in the process.
_PAUSE = 5.0
#: Attempts per transaction.
ATTEMPTS = 3
#: Maximum number of successive transactions of a sweep that release nothing, because all expired leases are locked.
MAX_IDLE = 50


def sweep(
    database: Database,
    max_leases: int | None = None,
    until: float | None = None,
    released: Callable[[int], object] = lambda _: None,
) -> bool:
    """Release expired leases.

    Args:
        max_leases: The maximum number of leases; None for all.
        until: The time, by the monotonic clock, after which no transaction begins except the first; None for no limit.
        released: A callback after each transaction with the number of leases that it released.

    Returns:
        Whether no expired lease is left.

    Raises:
        Failure: As for ``Database.write``; leases released by earlier transactions stay released.
    """
    idle, begun = 0, False
    while database.read(leases.any_expired):
        if max_leases == 0 or idle == MAX_IDLE or (begun and until is not None and time.monotonic() > until):
            return False
        begun = True
        batch = release.BATCH if max_leases is None else min(max_leases, release.BATCH)
        count = database.write(lambda db: leases.release_expired(db, batch), attempts=ATTEMPTS)  # noqa: B023
        released(count)
        if max_leases is not None:
            max_leases -= count
        idle = 0 if count else idle + 1
        if idle:
            # Other transactions have locked all expired leases.
            retry.pause(idle)
    return True


class LeaseSweeper:
    """A runner of sweeps on behalf of requests, shared by all threads.

    A sweep never fails a request, and its time is limited.
    """

    def __init__(self, database: Database, time_limit: float = _TIME_LIMIT) -> None:
        """Prepare sweeps that begin no transaction after ``time_limit`` seconds."""
        self._database = database
        self._time_limit = time_limit
        #: The time, by the monotonic clock, before which this process does not sweep.
        self._not_before = 0.0
        #: Whether the last sweep ran out of time, and the next one will release more.
        self.is_behind = False

    def sweep(self) -> bool:
        """Release expired leases within the time limit; return False if the sweeper is pausing."""
        self.is_behind = False
        now = time.monotonic()
        if now < self._not_before:
            return False
        released: list[int] = []
        try:
            due = self._database.read(leases.count_expired)
            signals.leases_due(due)
            if due and not sweep(self._database, until=now + self._time_limit, released=released.append):
                self.is_behind = any(released)
                if not self.is_behind:
                    self._not_before = time.monotonic() + _PAUSE
                signals.leases_due(self._database.read(leases.count_expired))
            elif due:
                signals.leases_due(0)
        except Exception as error:
            # The database may be read-only.  Searches go on, and do not see the capacity of expired leases as free.
            self._not_before = time.monotonic() + _PAUSE
            reason = driver_errors.cause_of(error) if isinstance(error, errors.Failure) else None
            LOG.warning("Expired leases cannot be released: %s", reason or error)
        return True
