"""Gives back what expired leases hold, after a request, so that no daemon is needed (docs: leases)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator

from placement.db.database import Database
from placement.objects.claims.lease_sweep import LeaseSweeper


class LeaseSweeps:
    """Has leases swept once in an interval, in the thread that has sent a reply.

    Attributes:
        next_at: When the next reply is to be followed by a sweep, by the monotonic clock.
    """

    def __init__(self, database: Database, interval: float) -> None:
        """Begin an interval, in seconds; 0 for no sweeps."""
        self._sweeper = LeaseSweeper(database)
        self._interval = interval or math.inf
        self.next_at = time.monotonic() + self._interval

    def after(self, reply: Iterable[bytes]) -> Iterable[bytes]:
        """Return the reply, followed by a sweep."""
        # Two threads may come here at once: both sweeps are correct.
        self.next_at = time.monotonic() + self._interval
        return _Followed(reply, self._sweeper)


class _Followed:
    """A reply; the server closes it when it has sent it (PEP 3333), and then leases are swept."""

    def __init__(self, reply: Iterable[bytes], sweeper: LeaseSweeper) -> None:
        self._reply = reply
        self._sweeper = sweeper

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._reply)

    def close(self) -> None:
        """Close the reply, and sweep."""
        try:
            if close := getattr(self._reply, "close", None):
                close()
        finally:
            self._sweeper.sweep()
