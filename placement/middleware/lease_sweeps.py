"""Release of expired leases after a response, so that no daemon is needed (docs: leases)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator

from placement.db.database import Database
from placement.objects.claims.lease_sweep import LeaseSweeper


class LeaseSweeps:
    """Sweeps of leases, once per interval, in the thread that has sent a response.

    Attributes:
        next_at: The monotonic time from which the next response is followed by a sweep.
    """

    def __init__(self, database: Database, interval: float) -> None:
        """Start the first interval of ``interval`` seconds; 0 disables the sweeps."""
        self._sweeper = LeaseSweeper(database)
        self._interval = interval or math.inf
        self.next_at = time.monotonic() + self._interval

    def add_to(self, chunks: Iterable[bytes]) -> Iterable[bytes]:
        """Return the body of a response with a sweep after its last byte."""
        # Two threads may reach this line at once; a second sweep does no harm.
        self.next_at = time.monotonic() + self._interval
        return _SweepOnClose(chunks, self._sweeper)


class _SweepOnClose:
    """The body of a response; sweeps leases when the server closes it, which it does after sending it (PEP 3333)."""

    def __init__(self, chunks: Iterable[bytes], sweeper: LeaseSweeper) -> None:
        self._chunks = chunks
        self._sweeper = sweeper

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)

    def close(self) -> None:
        """Close the body, then sweep."""
        try:
            if close := getattr(self._chunks, "close", None):
                close()
        finally:
            self._sweeper.sweep()
