"""What stands in for a database where a request is a dry run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from placement import errors
from placement.db.database import Database
from placement.db.writes import retry
from placement.db.writes.transaction import Reading, Transaction

Result = TypeVar("Result")
Seen = TypeVar("Seen")


class DryRun(Generic[Seen]):
    """The writes of one request, none of which is committed; each runs after those before it, in one transaction."""

    def __init__(self, database: Database, look: Callable[[Transaction], Seen]) -> None:
        """Begin a dry run.

        Args:
            database: Where the writes run before they are rolled back.
            look: Called at the end of the transaction of each write.  It sees what the write has done, unless that was
                refused.
        """
        self._database = database
        self._look = look
        self._done: list[Callable[[Transaction], Any]] = []
        #: What ``look`` returned for the last write; None if no write has come to its end or to a refusal.
        self.seen: Seen | None = None

    def read(self, work: Callable[[Reading], Result]) -> Result:
        """Return what ``work(db)`` returns, which sees nothing of the writes; raises like ``Database.read``."""
        return self._database.read(work)

    def write(
        self,
        work: Callable[[Transaction], Result],
        *,
        attempts: int = retry.ATTEMPTS,
        exhausted: type[errors.Conflict] = errors.TooManyConflicts,
    ) -> Result:
        """Return what ``work(db)`` returns, and roll it back; arguments and failures as of ``Database.write``."""

        def look(db: Transaction) -> None:
            self.seen = self._look(db)

        works = [*self._done, work]
        result = cast(Result, self._database.dry_run(works, look, attempts=attempts, exhausted=exhausted))
        self._done.append(work)
        return result
