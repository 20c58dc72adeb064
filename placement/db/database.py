"""A database, with its connections and feed writers, and the reads, writes and dry runs on it.

A write is a function of a transaction.  It runs as an attempt at READ COMMITTED (placement/db/writes/attempt.py).  An
attempt that collides with other transactions, in any statement or at COMMIT, is rolled back and retried as a whole
(placement/db/writes/retry.py).

A read runs in autocommit mode: each statement sees the state committed when it begins.  Code that needs two statements
reads the generation first, so that its result is at least as new as the generation that it returns.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from placement import errors, signals
from placement.db import feed
from placement.db.engine import bulkhead, dialects, driver_errors, statements
from placement.db.engine.driver_errors import ErrorClass
from placement.db.engine.timeouts import UNBOUNDED
from placement.db.writes import retry
from placement.db.writes.attempt import Attempts, Lock, Work, WriteLock
from placement.db.writes.notes import Recorder
from placement.db.writes.queue import Queue
from placement.db.writes.transaction import Prerequisite, Reader, Reading

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")
Params = ParamSpec("Params")

#: Maximum number of allocations, of all claims together, in a batch of the queue.
MAX_BATCH_SIZE = 100


class Database:
    """One database, shared by the threads of a process.

    A forked child does not use the connections and writers of its parent.  Both are tied to the process that created
    them, because servers written in C (uWSGI) fork without Python's hooks.
    """

    def __init__(self, url: str | sa.URL, **options: Any) -> None:
        """Create the engines, which connect when they are first used.

        Args:
            url: A SQLAlchemy URL.
            options: Options of ``dialects.Setup.from_options`` and of ``sqlalchemy.create_engine``.
        """
        self.url = dialects.normalise(url)
        self._setup = dialects.Setup.from_options(self.url, **options)
        self.engine = dialects.writing_engine(self._setup)
        self.reading_engine = dialects.reading_engine(self._setup, self.engine)
        self._probing_engine = dialects.probing_engine(self._setup, self.reading_engine)
        self.bulkhead = bulkhead.Bulkhead()
        self.writers = feed.Writers()
        sqlite = self.url.get_backend_name() == "sqlite"
        write_lock: Lock = WriteLock() if sqlite else contextlib.nullcontext()
        # An in-memory database has only one connection, which reads also use.
        self._read_lock: Lock = write_lock if dialects.in_memory(self.url) else contextlib.nullcontext()
        self._attempts = Attempts(self.engine, self.writers, write_lock, self._discard_stale)
        #: The queue of claims that can share a transaction (``objects/claims/joint_claims.py``).
        self.queue: Queue[Any, bool] = Queue(MAX_BATCH_SIZE, self.wait_for)

    @property
    def recorder(self) -> Recorder | None:
        """The recorder of the changes of all transactions; None if they are not recorded."""
        return self._attempts.recorder

    @recorder.setter
    def recorder(self, recorder: Recorder) -> None:
        self._attempts.recorder = recorder

    def publish_statements(self) -> None:
        """Publish every statement from now on, with its duration; a second call has no effect."""
        for engine in {self.engine, self.reading_engine}:
            statements.publish(engine)

    def dispose(self) -> None:
        """Close all idle connections."""
        self.engine.dispose()
        self.reading_engine.dispose()
        self._probing_engine.dispose()

    @contextlib.contextmanager
    def unbounded_engine(self) -> Iterator[sa.Engine]:
        """Provide an engine without time limits on statements, for changes of the schema."""
        if dialects.in_memory(self.url):
            yield self.engine
            return
        engine = dialects.writing_engine(dataclasses.replace(self._setup, timeouts=UNBOUNDED))
        try:
            yield engine
        finally:
            engine.dispose()

    @contextlib.contextmanager
    def direct(self) -> Iterator[None]:
        """Let the caller use the engines directly; no other thread uses a shared connection meanwhile."""
        with self.bulkhead.admit(), self._read_lock:
            yield

    def probe(self, work: Callable[[Reading], Result]) -> Result:
        """Return the result of ``work(db)`` on a dedicated connection, within seconds; for health checks.

        Raises:
            Unavailable: The server does not answer, lacks tables, or refuses the service.
            SQLAlchemyError: The server reports another error.
        """
        deadline = time.monotonic() + dialects.PROBING.connect / 2
        while True:
            try:
                with self._read_lock, self._probing_engine.connect() as connection:
                    return work(Reader(connection))
            except exc.SQLAlchemyError as error:
                if driver_errors.classify(error) is not ErrorClass.LOST:
                    retry.raise_for_operator(error)
                    raise
                # Replace a connection that failed at once; after waiting for a silent server, no time is left.
                if time.monotonic() > deadline:
                    raise retry.lost_server_failure(error) from error
                time.sleep(0.1)

    def read(
        self, work: Callable[Concatenate[Reading, Params], Result], /, *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Return the result of ``work(db, ...)``, or raise DatabaseUnavailable or DatabaseBusy."""

        def attempt(_number: int) -> Result:
            with self._read_lock, self.reading_engine.connect() as connection:
                return work(Reader(connection), *args, **kwargs)

        with signals.timed("database"), self.bulkhead.admit():
            return retry.until_done(
                attempt, retry.ATTEMPTS, errors.DatabaseUnavailable, retry.new_deadline(), self._discard_stale
            )

    def snapshot(self, work: Callable[[Connection], Result]) -> Result:
        """Return the result of ``work(db)``, whose statements all see one committed state; failures as for ``read``."""

        def attempt(_number: int) -> Result:
            with self._read_lock, self.reading_engine.connect() as connection, dialects.snapshot(connection):
                return work(connection)

        with signals.timed("database"), self.bulkhead.admit():
            return retry.until_done(
                attempt, retry.ATTEMPTS, errors.DatabaseUnavailable, retry.new_deadline(), self._discard_stale
            )

    def write(
        self,
        work: Work[Result],
        *,
        attempts: int = retry.ATTEMPTS,
        exhausted: type[errors.Conflict] = errors.TooManyConflicts,
    ) -> Result:
        """Return the result of ``work(db)`` from the attempt that was committed.

        Args:
            work: Reads and writes in the transaction; called once for each attempt.
            attempts: The maximum number of attempts.
            exhausted: The failure to raise if all attempts collide or the deadline passes.

        Raises:
            Conflict: ``exhausted``.
            DatabaseUnavailable: The server cannot be reached; nothing was changed.
            DatabaseBusy: The server does not answer the threads that use it; nothing was changed.
            OutcomeUnknown: The connection was lost during COMMIT.
        """
        attempt = functools.partial(self._attempts.commit, work)
        return self._after_prerequisites(
            attempt, attempts, exhausted, lambda first: self.write(first, exhausted=exhausted)
        )

    def wait_for(self, done: threading.Event) -> bool:
        """Wait for another thread's work on this database; see ``Bulkhead.wait_for``."""
        return self.bulkhead.wait_for(done)

    def dry_run(
        self,
        writes: Sequence[Work[Any]],
        observe: Work[object],
        *,
        attempts: int = retry.ATTEMPTS,
        exhausted: type[errors.Conflict] = errors.TooManyConflicts,
    ) -> Any:
        """Return the result of the last of ``writes``; commit nothing, and record nothing in the feed.

        Args:
            writes: Run in one transaction, each as if the previous writes were committed.  A prerequisite passed to
                ``Transaction.require`` is not run, because the attempt has the same outcome without it.  A Prerequisite
                that a write raises itself is run before the writes.
            observe: A callback at the end of the transaction.  It sees the effects of all writes, or of no write if one
                is refused.
            attempts: As for ``write``.
            exhausted: As for ``write``.

        Raises:
            Failure: A write is refused; or as for ``write``, and then ``observe`` may not have been called.
        """
        all_writes = [*writes]
        attempt = functools.partial(self._attempts.roll_back, all_writes, observe)
        return self._after_prerequisites(attempt, attempts, exhausted, lambda first: all_writes.insert(0, first))

    def _after_prerequisites(
        self,
        attempt: Callable[[int], Result],
        attempts: int,
        exhausted: type[errors.Conflict],
        run_prerequisite: Callable[[Work[object]], object],
    ) -> Result:
        """Run attempts until one raises no Prerequisite, and run each prerequisite before the next attempt.

        Give up at the deadline, but never before the attempt after the first prerequisite: otherwise no request that
        needs one would succeed on a slow server.
        """
        deadline = retry.new_deadline()
        for number in itertools.count():
            try:
                with signals.timed("database"), self.bulkhead.admit():
                    return retry.until_done(attempt, attempts, exhausted, deadline, self._discard_stale)
            except Prerequisite as prerequisite:
                if number and retry.has_passed(deadline):
                    break
                run_prerequisite(prerequisite.work)
            if number:
                # A prerequisite may not help, for example if the clocks of Galera nodes differ.
                retry.pause(number)
        raise exhausted()

    def wait_until_reachable(self, max_retries: int, retry_interval: float) -> None:
        """Wait until the server answers.

        Args:
            max_retries: Attempts after the first; -1 for no limit.
            retry_interval: Seconds between two attempts.

        Raises:
            DatabaseUnavailable: No attempt succeeded, or the server reported an error that a retry would not fix.
        """
        failed = 0
        limit = "" if max_retries < 0 else f" of {max_retries + 1}"
        while True:
            try:
                with self.reading_engine.connect() as connection:
                    connection.execute(sa.select(1))
                return
            except exc.SQLAlchemyError as error:
                if not driver_errors.is_transient(error) or 0 <= max_retries <= failed:
                    raise retry.lost_server_failure(error) from error
                if not failed:
                    LOG.warning("The database does not answer yet: %s", driver_errors.message(error))
            failed += 1
            LOG.warning("The database%s did not answer attempt %d%s", self._location(), failed, limit)
            time.sleep(retry_interval)

    def _location(self) -> str:
        """Return the host and port of the server for a log line; empty for a database without a server."""
        url = self.reading_engine.url
        port = f":{url.port}" if url.port else ""
        return f" at {url.host}{port}" if url.host else ""

    def _discard_stale(self, error: Exception, began: float) -> None:
        """Discard the connections of all pools and the feed writers if the error shows that the server was lost.

        The server that answers next may be another one, or the same one without its newest commits.  An error that
        leaves its connection intact, or that prevents a new connection, does not show a lost server.
        """
        if isinstance(error, exc.DBAPIError) and (error.connection_invalidated or driver_errors.is_read_only(error)):
            self.writers.drop_idle()
            self._setup.freshness.discard_connections(began)


@contextlib.contextmanager
def open_database(url: str | sa.URL, **options: Any) -> Iterator[Database]:
    """Provide a database for a block, then close its connections."""
    database = Database(url, **options)
    try:
        yield database
    finally:
        database.dispose()
