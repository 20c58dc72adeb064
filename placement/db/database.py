"""A database: its connections, its feed writers, and the ways to use it: reads, writes and dry runs.

A write is a function of a transaction.  It runs as an attempt at READ COMMITTED (placement/db/writes/attempt.py).  An
attempt that collides with other transactions, in any statement or at COMMIT, is rolled back and runs again as a whole
(placement/db/writes/retry.py).

A read runs in autocommit mode: every statement sees its own committed state.  Code that needs two statements reads the
generation first, so that what it returns is at least as new as the generation it returns.
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
Given = ParamSpec("Given")

#: The largest sum of the sizes of writes that share one transaction.
LARGEST = 100


class Database:
    """One database, shared by the threads of a process.

    A forked child uses no connection and no writer of its parent.  Both remember the process that made them, because
    servers written in C (uWSGI) fork without Python's hooks.
    """

    def __init__(self, url: str | sa.URL, **options: Any) -> None:
        """Prepare the engines; connections are made when they are needed.

        Args:
            url: The URL of SQLAlchemy.
            options: Those of ``dialects.Setup.of``, and of SQLAlchemy's engines.
        """
        self.url = dialects.normalise(url)
        self._setup = dialects.Setup.of(self.url, **options)
        self.engine = dialects.writing_engine(self._setup)
        self.reading_engine = dialects.reading_engine(self._setup, self.engine)
        self._probing_engine = dialects.probing_engine(self._setup, self.reading_engine)
        self.bulkhead = bulkhead.Bulkhead()
        self.writers = feed.Writers()
        sqlite = self.url.get_backend_name() == "sqlite"
        write_lock: Lock = WriteLock() if sqlite else contextlib.nullcontext()
        # A database in memory is one connection, which reads use, too.
        self._read_lock: Lock = write_lock if dialects.in_memory(self.url) else contextlib.nullcontext()
        self._attempts = Attempts(self.engine, self.writers, write_lock, self._discard_stale)
        #: For claims that can share a transaction (``objects/claims/joint_claims.py``).
        self.queue: Queue[Any, bool] = Queue(LARGEST, self.wait_for)

    @property
    def recorder(self) -> Recorder | None:
        """What records the changes of all transactions; None if nothing does."""
        return self._attempts.recorder

    @recorder.setter
    def recorder(self, recorder: Recorder) -> None:
        self._attempts.recorder = recorder

    def publish_statements(self) -> None:
        """Publish every statement and its seconds from now on; again, it changes nothing."""
        for engine in {self.engine, self.reading_engine}:
            statements.publish(engine)

    def dispose(self) -> None:
        """Close all idle connections."""
        self.engine.dispose()
        self.reading_engine.dispose()
        self._probing_engine.dispose()

    @contextlib.contextmanager
    def unbounded_engine(self) -> Iterator[sa.Engine]:
        """Provide an engine whose statements have no time limit, for changes of the schema."""
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
        """Let the caller use the engines themselves; meanwhile no other thread uses a connection that all share."""
        with self.bulkhead.admit(), self._read_lock:
            yield

    def probe(self, work: Callable[[Reading], Result]) -> Result:
        """For health checks: return what ``work(db)`` returns, on a connection of its own and within seconds.

        Raises:
            Unavailable: The server does not answer, lacks tables, or refuses the service.
            SQLAlchemyError: The server answers with another error.
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
                # A connection that failed at once is replaced; one that did not answer has used up the time.
                if time.monotonic() > deadline:
                    raise retry.unavailable(error) from error
                time.sleep(0.1)

    def read(
        self, work: Callable[Concatenate[Reading, Given], Result], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        """Return what ``work(db, ...)`` returns; raises DatabaseUnavailable or DatabaseBusy."""

        def attempt(_number: int) -> Result:
            with self._read_lock, self.reading_engine.connect() as connection:
                return work(Reader(connection), *args, **kwargs)

        with signals.timed("database"), self.bulkhead.admit():
            return retry.until_done(
                attempt, retry.ATTEMPTS, errors.DatabaseUnavailable, retry.new_deadline(), self._discard_stale
            )

    def snapshot(self, work: Callable[[Connection], Result]) -> Result:
        """Return what ``work(db)`` returns; all its statements see one committed state.  Raises like ``read``."""

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
        """Return what ``work(db)`` returned in the attempt that was committed.

        Args:
            work: Reads and writes in the transaction; it may be called several times.
            attempts: The largest number of attempts.
            exhausted: The failure if all attempts collide, or the deadline passes.

        Raises:
            Conflict: ``exhausted``.
            DatabaseUnavailable: The server cannot be reached; nothing was changed.
            DatabaseBusy: Too many threads wait for the server; nothing was changed.
            OutcomeUnknown: The connection was lost during COMMIT.
        """
        attempt = functools.partial(self._attempts.commit, work)
        return self._after_prerequisites(
            attempt, attempts, exhausted, lambda first: self.write(first, exhausted=exhausted)
        )

    def wait_for(self, done: threading.Event) -> bool:
        """Wait for work that another thread does with this database; see ``Bulkhead.wait_for``."""
        return self.bulkhead.wait_for(done)

    def dry_run(
        self,
        works: Sequence[Work[Any]],
        look: Work[object],
        *,
        attempts: int = retry.ATTEMPTS,
        exhausted: type[errors.Conflict] = errors.TooManyConflicts,
    ) -> Any:
        """Return what the last of ``works`` returns, but commit nothing and leave the feed alone.

        Args:
            works: Run in one transaction, each as if those before it were committed.  What they ask for by
                ``Transaction.require`` is not done: an attempt that lacks it comes to the same decision.  A
                prerequisite that they raise themselves is run before them.
            look: Called at the end of the transaction.  It sees what the works have done, or nothing of that if they
                are refused.
            attempts: As for ``write``.
            exhausted: As for ``write``.

        Raises:
            Failure: A work is refused; or as for ``write``, and then ``look`` may not have been called.
        """
        all_works = [*works]
        attempt = functools.partial(self._attempts.roll_back, all_works, look)
        return self._after_prerequisites(attempt, attempts, exhausted, lambda first: all_works.insert(0, first))

    def _after_prerequisites(
        self,
        attempt: Callable[[int], Result],
        attempts: int,
        exhausted: type[errors.Conflict],
        carry_out: Callable[[Work[object]], object],
    ) -> Result:
        """Run attempts until one lacks no prerequisite, and have each prerequisite carried out before the next.

        It ends at the deadline.  But after the first prerequisite the attempt always runs once more, or a slow server
        would answer no request that needs one.
        """
        deadline = retry.new_deadline()
        for number in itertools.count():
            try:
                with signals.timed("database"), self.bulkhead.admit():
                    return retry.until_done(attempt, attempts, exhausted, deadline, self._discard_stale)
            except Prerequisite as prerequisite:
                if number and retry.has_passed(deadline):
                    break
                carry_out(prerequisite.work)
            if number:
                # One that does not help, as where the clocks of Galera nodes differ, is not repeated without a pause.
                retry.pause(number)
        raise exhausted()

    def wait_until_reachable(self, max_retries: int, retry_interval: float) -> None:
        """Return once the server answers.

        Args:
            max_retries: Tries after the first; -1 for no limit.
            retry_interval: Seconds between two tries.

        Raises:
            DatabaseUnavailable: No try succeeded, or the server answered with an error that another try would not help.
        """
        tries = 0
        most = "" if max_retries < 0 else f" of {max_retries + 1}"
        while True:
            try:
                with self.reading_engine.connect() as connection:
                    connection.execute(sa.select(1))
                return
            except exc.SQLAlchemyError as error:
                if not driver_errors.is_transient(error) or 0 <= max_retries <= tries:
                    raise retry.unavailable(error) from error
                if not tries:
                    LOG.warning("The database does not answer yet: %s", driver_errors.message(error))
            tries += 1
            LOG.warning("The database%s did not answer attempt %d%s", self._place(), tries, most)
            time.sleep(retry_interval)

    def _place(self) -> str:
        """Return where the server is, for a log line; empty for a database without a server."""
        url = self.reading_engine.url
        port = f":{url.port}" if url.port else ""
        return f" at {url.host}{port}" if url.host else ""

    def _discard_stale(self, error: Exception, began: float) -> None:
        """Stop using what was made before the server was lost: the connections of all pools, and the feed writers.

        The server that answers next may be another one, or the same one without its newest commits.  An error that
        leaves its connection intact, or that prevents a new connection, does not show that the server was lost.
        """
        if isinstance(error, exc.DBAPIError) and (error.connection_invalidated or driver_errors.is_read_only(error)):
            self.writers.drop_idle()
            self._setup.freshness.discard_connections(began)


@contextlib.contextmanager
def opened(url: str | sa.URL, **options: Any) -> Iterator[Database]:
    """Provide a database for the length of a block."""
    database = Database(url, **options)
    try:
        yield database
    finally:
        database.dispose()
