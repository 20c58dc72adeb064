"""Readers and transactions, which execute the statements of reads and writes; exceptions that restart an attempt."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from sqlalchemy.engine import Connection, CursorResult

from placement.db import feed
from placement.db.engine import dialects
from placement.db.engine.compiled import CompiledInsert, CompiledStatement
from placement.db.writes import author
from placement.db.writes.notes import Advance, Changes, Notes

if TYPE_CHECKING:
    Rows = CursorResult[*tuple[Any, ...]]

LOG = logging.getLogger(__name__)


class Reading(Protocol):
    """An object that executes statements that only read: a connection, or the transaction of a write."""

    def execute(self, statement: Any, parameters: Any = None, /) -> Rows: ...


class Collision(Exception):
    """A conflict with another transaction: the attempt is rolled back and retried."""


class Prerequisite(Exception):
    """Work that must be committed before an attempt can succeed.

    The attempt is rolled back, ``work`` is committed separately, and the attempt runs again.  Leases raise this at
    once; ``Transaction.require`` defers it to the end of the attempt.
    """

    def __init__(self, work: Callable[[Transaction], object]) -> None:
        self.work = work


class Reader:
    """A connection that executes SQLAlchemy statements and compiled statements."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, statement: Any, parameters: Any = None, /) -> Rows:
        """Return the result of a statement; for a compiled statement, it provides only rows and their number."""
        if isinstance(statement, (CompiledStatement, CompiledInsert)):
            return cast("Rows", statement.execute(self._connection, parameters))
        return self._connection.execute(statement, parameters)


class Transaction(Reader):
    """One attempt at a write: its connection, and the changes that it has made so far."""

    __slots__ = ("_changes", "_notes", "_on_commit", "_prerequisite", "attempt")

    def __init__(self, connection: Connection, attempt: int = 1, *, notes: Notes | None = None) -> None:
        """Wrap a connection on which a transaction has begun, or will begin.

        Args:
            attempt: The number of the attempt, from 1.
            notes: The notes of its changes; None if they are not recorded.
        """
        super().__init__(connection)
        self._notes = notes
        self._changes: dict[int, str] = {}
        self._on_commit: list[Callable[[], object]] = []
        self._prerequisite: Callable[[Transaction], object] | None = None
        #: The number of this attempt, from 1; after a prerequisite it starts again at 1.
        self.attempt = attempt

    def insert(self, statement: CompiledInsert, rows: Sequence[Mapping[str, Any]], *, key: str) -> dict[Any, int]:
        """Insert rows, and return the ids that the database assigns, by the value of the column ``key``."""
        return statement.execute_returning_ids(self._connection, rows, key)

    @property
    def dialect(self) -> str:
        """SQLAlchemy's name of the dialect."""
        return self._connection.dialect.name

    @property
    def locks_rows(self) -> bool:
        """Whether the database locks rows, rather than the whole database."""
        return self.dialect != "sqlite"

    @property
    def skips_locked_rows(self) -> bool:
        """Whether the server supports SKIP LOCKED; SQLite has no row locks."""
        return dialects.skips_locked_rows(self._connection.dialect)

    def record_change(self, provider_id: int, kind: str) -> None:
        """Record in the feed, with this transaction, a change of the provider; ``kind`` is a constant of the feed."""
        self._changes[provider_id] = feed.stronger_change(self._changes.get(provider_id), kind)

    @property
    def has_history(self) -> bool:
        """Whether changes are noted, for which the old values are needed as well."""
        return self._notes is not None

    def note(
        self,
        kind: str,
        key: str,
        changes: Changes,
        *,
        advance: Advance | None = None,
        project: str | None = None,
        by: author.Author | None = None,
    ) -> None:
        """Note a change of an object, with this transaction; arguments as for ``Notes.add``.

        Args:
            by: The author of the change; None for the thread's author.
        """
        if self._notes is not None:
            by = by or author.current()
            self._notes.add(kind, key, by, changes, advance=advance, project=project)

    @property
    def changed_providers(self) -> Collection[int]:
        """The ids of the providers recorded so far; ``feed.NO_PROVIDER`` stands for changes of no provider."""
        return self._changes.keys()

    def on_commit(self, call: Callable[[], object]) -> None:
        """Call ``call`` after this transaction commits; for metrics, which must count each transaction once."""
        self._on_commit.append(call)

    def run_callbacks(self) -> None:
        """Call the callbacks of ``on_commit``; an error in them is only logged, since the transaction is in effect."""
        for call in self._on_commit:
            try:
                call()
            except Exception:
                LOG.exception("A callback failed after COMMIT; metrics may lack this transaction.")

    def require(self, work: Callable[[Transaction], object]) -> None:
        """Have ``work`` committed in a separate transaction, and this attempt run again after it.

        This attempt first runs to its end, and is then rolled back.  If it fails, ``work`` is not done.  Use it for
        rows that must survive the rollback, and that this transaction must not lock.  If an attempt calls this more
        than once, only the last ``work`` is done.
        """
        self._prerequisite = work

    def check_prerequisite(self) -> None:
        """Raise Prerequisite if the attempt has called ``require``."""
        if self._prerequisite is not None:
            raise Prerequisite(self._prerequisite)

    def record(self, writer: feed.Writer) -> int:
        """Insert the changes into the feed, and record the notes, as the last statements before COMMIT.

        Returns:
            The sequence number of the writer's newest transaction once this one is committed.
        """
        if self._notes and not self._changes:
            self._changes[feed.NO_PROVIDER] = feed.USAGE
        if not self._changes:
            return writer.seq
        seq = writer.seq + 1
        recorded = [(feed.RECORD, writer.rows(self._changes))]
        if self._notes:
            recorded += self._notes.inserts(writer.id, seq)
            self.on_commit(self._notes.committed)
        CompiledInsert.execute_together(self._connection, recorded)
        return seq
