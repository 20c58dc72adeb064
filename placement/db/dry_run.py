"""A stand-in for a database whose writes are rolled back, for dry runs of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from placement import errors
from placement.db.database import Database
from placement.db.writes import retry
from placement.db.writes.transaction import Reading, Transaction

Result = TypeVar("Result")
Observation = TypeVar("Observation")


class DryRun(Generic[Observation]):
    """The uncommitted writes of one request; each transaction repeats the earlier writes first."""

    def __init__(self, database: Database, observe: Callable[[Transaction], Observation]) -> None:
        """Begin a dry run.

        Args:
            database: The database in which the writes run before they are rolled back.
            observe: A callback at the end of each write's transaction.  It sees the effects of the write, unless it was
                refused.
        """
        self._database = database
        self._observe = observe
        self._earlier_writes: list[Callable[[Transaction], Any]] = []
        #: The result of ``observe`` for the last write; None before a write has completed or been refused.
        self.observation: Observation | None = None

    def read(self, work: Callable[[Reading], Result]) -> Result:
        """Return the result of ``work(db)``, which does not see the writes; failures as for ``Database.read``."""
        return self._database.read(work)

    def write(
        self,
        work: Callable[[Transaction], Result],
        *,
        attempts: int = retry.ATTEMPTS,
        exhausted: type[errors.Conflict] = errors.TooManyConflicts,
    ) -> Result:
        """Return the result of ``work(db)``, and roll it back; arguments and failures as for ``Database.write``."""

        def observe(db: Transaction) -> None:
            self.observation = self._observe(db)

        writes = [*self._earlier_writes, work]
        result = cast(Result, self._database.dry_run(writes, observe, attempts=attempts, exhausted=exhausted))
        self._earlier_writes.append(work)
        return result
