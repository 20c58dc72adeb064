"""Attempts at a write: each is one transaction, which does its work, records it in the feed, and commits."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import exc
from sqlalchemy.engine import Connection, Engine

from placement import errors, signals
from placement.db import feed
from placement.db.engine import dialects, driver_errors
from placement.db.engine.driver_errors import ErrorClass
from placement.db.engine.timeouts import LOCK_TIMEOUT
from placement.db.writes import expired_writers
from placement.db.writes.notes import Recorder
from placement.db.writes.transaction import Collision, Transaction

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")
#: The function of a write; it may be called several times, each time with a new transaction.
Work = Callable[[Transaction], Result]
#: The lock held during an attempt; a null context if the database needs no lock.
Lock = contextlib.AbstractContextManager[None]


class WriteLock:
    """A reentrant lock for the threads of this process; a thread that waits too long for it raises Collision.

    SQLite allows one writer at a time.  Threads wait for this lock instead of polling the lock of the file.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=LOCK_TIMEOUT):
            raise Collision

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Attempts:
    """A runner of attempts, which uses the connections and feed writers of one database; shared by all threads."""

    def __init__(
        self,
        engine: Engine,
        writers: feed.Writers,
        lock: Lock,
        on_lost: Callable[[Exception, float], None],
    ) -> None:
        """Create a runner for an engine and its feed writers.

        Args:
            lock: The lock held during each attempt.
            on_lost: A callback with the error and the current time if the connection is lost during COMMIT.
        """
        self._engine = engine
        self._writers = writers
        self._lock = lock
        self._on_lost = on_lost
        #: The recorder of the transactions' changes; None if they are not recorded.
        self.recorder: Recorder | None = None

    def commit(self, work: Work[Result], number: int) -> Result:
        """Return the result of ``work(db)`` once it is committed.

        Args:
            number: The number of the attempt, from 1.

        Raises:
            OutcomeUnknown: The connection was lost during COMMIT.
            Prerequisite: Other work must be committed first; the attempt was rolled back.
        """
        with self._lock:
            writer = self._writers.check_out(self._engine)
            # Whether the last sequence number that the writer has used is known.
            is_known = True
            try:
                with self._engine.connect() as connection:
                    notes = None if self.recorder is None else self.recorder.notes()
                    transaction = Transaction(connection, number, notes=notes)
                    signals.attempted(number)
                    connection.begin()
                    result = work(transaction)
                    transaction.check_prerequisite()
                    is_known = False
                    seq = transaction.record(writer)
                    self._commit(connection)
                    writer.seq, is_known = seq, True
            except exc.DBAPIError as error:
                # An IntegrityError means that another process has ended the writer: its row is gone, or its number is
                # taken.
                if driver_errors.classify(error) is ErrorClass.COLLISION and not isinstance(error, exc.IntegrityError):
                    is_known = True
                raise
            finally:
                if is_known:
                    self._writers.check_in(writer)
        transaction.run_callbacks()
        if writer.maintenance_due():
            self.maintain(writer)
        if self.recorder is not None:
            self.recorder.committed()
        return result

    def roll_back(self, writes: Sequence[Work[Any]], observe: Work[object], number: int) -> Any:
        """Return the result of the last of the writes, and commit none of them; see ``Database.dry_run``.

        The attempt uses no feed writer, and so no sequence number.  It is rolled back when its connection returns to
        the pool.
        """
        with self._lock, self._engine.connect() as connection:
            connection.begin()
            savepoint = connection.begin_nested()
            transaction = Transaction(connection, number)
            try:
                results = [work(transaction) for work in writes]
            except errors.Failure:
                savepoint.rollback()
                observe(Transaction(connection, number))
                raise
            observe(transaction)
            return results[-1]

    def _commit(self, connection: Connection) -> None:
        try:
            with signals.timed("sql"):
                dialects.commit(connection)
        except exc.SQLAlchemyError as error:
            if driver_errors.classify(error) is ErrorClass.LOST and not driver_errors.is_read_only(error):
                LOG.error("The outcome of a COMMIT is unknown: %s", driver_errors.message(error))
                self._on_lost(error, time.monotonic())
                raise errors.OutcomeUnknown() from error
            raise

    def maintain(self, writer: feed.Writer) -> None:
        """Renew this writer's lease, let the recorder finish, then end the writers whose lease has expired.

        The recorder comes first, because its records bear the numbers of the writers to end.  This happens after a
        request's COMMIT; an error is logged, and does not fail the request.
        """
        try:
            with self._lock:
                cutoff = writer.maintain(self._engine)
            may_end = self.recorder is None or self.recorder.maintain()
            if cutoff is not None and may_end:
                self.commit(lambda db: expired_writers.end(db, cutoff), 1)
        except Exception as error:
            LOG.warning("The maintenance of the change feed failed: %s", driver_errors.message(error))
