"""Sweeps: all expired leases are given back, in transactions of bounded size.

There is no daemon.  Searches, claims, a worker's requests and a command of operators sweep; several at a time share the
work, since each skips the consumers that another one has locked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from placement import errors, signals
from placement.db import driver_errors, origin, retry
from placement.db.database import Database
from placement.db.origin import Origin
from placement.objects import leases, release

LOG = logging.getLogger(__name__)

#: Seconds that a request spends on a sweep, at most.
_LONGEST = 5.0
#: Seconds without another sweep in the process after one that failed, or ended before it was done.
_PAUSE = 5.0
#: Attempts of one transaction.
ATTEMPTS = 3
#: Transactions in a row that find all due consumers locked, until a sweep ends.
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
        most: The most leases; None for all.
        until: The time, by the monotonic clock, after which no further transaction begins; None for no limit.
        given_back: Called with the number of leases after each transaction.

    Returns:
        Whether none is due any more.

    Raises:
        Failure: As ``Database.write``; what was given back until then stays so.
    """
    idle = 0
    while database.read(leases.some_due):
        if most == 0 or idle == MOST_IDLE or (until is not None and time.monotonic() > until):
            return False
        batch = release.BATCH if most is None else min(most, release.BATCH)
        ended = database.write(lambda db: leases.give_back(db, batch), attempts=ATTEMPTS)  # noqa: B023
        given_back(ended)
        if most is not None:
            most -= ended
        idle = 0 if ended else idle + 1
        if idle:
            # Other transactions have locked all that is due.
            retry.pause(idle)
    return True


class LeaseSweeper:
    """Sweeps on behalf of requests: it fails none of them, and holds none up for long.  Shared by all threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: The time, by the monotonic clock, before which this process does not sweep.
        self._not_before = 0.0

    def sweep(self) -> bool:
        """Give back what expired leases hold, within a few seconds; return whether that was tried."""
        with origin.acting(Origin(api="placement", route="leases")):
            return self._sweep()

    def _sweep(self) -> bool:
        now = time.monotonic()
        if now < self._not_before:
            return False
        try:
            due = self._database.read(leases.count_due)
            signals.leases_due(due)
            if due and not sweep(self._database, until=now + _LONGEST):
                self._not_before = time.monotonic() + _PAUSE
                signals.leases_due(self._database.read(leases.count_due))
            elif due:
                signals.leases_due(0)
        except Exception as error:
            # The database may take no writes; searches are answered all the same, without this room.
            self._not_before = time.monotonic() + _PAUSE
            reason = driver_errors.cause_of(error) if isinstance(error, errors.Failure) else None
            LOG.warning("Expired leases are not given back: %s", reason or error)
        return True
