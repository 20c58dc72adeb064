"""State that all calls of a service share."""

from __future__ import annotations

from oslo_config import cfg

from placement.db.database import Database
from placement.db.writes.queue import Queue
from placement.extensions.v1.claims.reasons import RecentReasons
from placement.extensions.v1.claims.request import ClaimRequest
from placement.extensions.v1.claims.result import ClaimResult
from placement.index.live import LiveIndex
from placement.index.snapshot import Snapshot

#: Maximum age of the snapshot for an optimistic claim, in seconds.
SNAPSHOT_AGE = 0.5
#: Maximum number of optimistic claims in one transaction.
_MAX_JOINT = 100
#: Maximum number of calls skipped after one failure.
_MAX_SKIPPED = 15


class Shared:
    """The parts of the service that calls use, and state common to the calls of all threads.

    Attributes:
        queue: Concurrent optimistic claims; the result is None if a claim was refused or no place was found.
    """

    def __init__(self, conf: cfg.ConfigOpts, database: Database, index: LiveIndex) -> None:
        """Create the state of a new service."""
        self.conf = conf
        self.database = database
        self.index = index
        self.backoff = OptimisticBackoff()
        self.reasons = RecentReasons()
        self.queue: Queue[ClaimRequest, ClaimResult | None] = Queue(_MAX_JOINT, database.wait_for)

    def recent_snapshot(self) -> Snapshot:
        """Return a snapshot for an optimistic claim."""
        return self.index.recent(SNAPSHOT_AGE)


class OptimisticBackoff:
    """Exponential backoff of optimistic claims: consecutive failures skip 1, 3, 7 and then 15 calls.

    Threads may overwrite each other's count without harm.
    """

    def __init__(self) -> None:
        self._next_skipped = self._skipped_left = 0

    def is_due(self) -> bool:
        """Return whether to try an optimistic claim; otherwise count the call as skipped."""
        if self._skipped_left > 0:
            self._skipped_left -= 1
            return False
        return True

    def note(self, placed: bool) -> None:
        """Record whether an optimistic claim was placed."""
        self._next_skipped = 0 if placed else min(2 * self._next_skipped + 1, _MAX_SKIPPED)
        self._skipped_left = self._next_skipped
