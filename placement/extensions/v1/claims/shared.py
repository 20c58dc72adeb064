"""What the calls of a service share."""

from __future__ import annotations

from oslo_config import cfg

from placement.db.database import Database
from placement.db.writes.queue import Queue
from placement.extensions.v1.claims.reasons import RecentReasons
from placement.extensions.v1.claims.request import ClaimRequest
from placement.extensions.v1.claims.result import ClaimResult
from placement.index.live import LiveIndex
from placement.index.snapshot import Snapshot

#: How old the snapshot of a guess may be, in seconds.
SNAPSHOT_AGE = 0.5
#: The most requests that guess together.
_MOST = 100
#: The most calls in a row without a guess.
_MOST_SKIPPED = 15


class Shared:
    """What calls need, and what the calls of all threads have in common; lives as long as the service.

    Attributes:
        queue: The requests of calls that guess at the same time; the result is None where the guess is lost.
    """

    def __init__(self, conf: cfg.ConfigOpts, database: Database, index: LiveIndex) -> None:
        """Take the parts of the service that calls need."""
        self.conf = conf
        self.database = database
        self.index = index
        self.backoff = OptimisticBackoff()
        self.reasons = RecentReasons()
        self.queue: Queue[ClaimRequest, ClaimResult | None] = Queue(_MOST, database.wait_for)

    def recent(self) -> Snapshot:
        """Return a snapshot to guess from."""
        return self.index.recent(SNAPSHOT_AGE)


class OptimisticBackoff:
    """Skips guesses after lost ones: each consecutive loss about doubles the number of calls that do not guess.

    If two threads overwrite each other's count, no harm is done.
    """

    def __init__(self) -> None:
        self._skipped_next = self._left = 0

    def is_due(self) -> bool:
        """Return whether to guess this time."""
        if self._left > 0:
            self._left -= 1
            return False
        return True

    def note(self, won: bool) -> None:
        """Take into account whether the guessed place was there."""
        self._skipped_next = 0 if won else min(2 * self._skipped_next + 1, _MOST_SKIPPED)
        self._left = self._skipped_next
