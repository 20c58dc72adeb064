"""The database: how to reach it, and the one way to read and the one way to write.

A write is a function of a transaction.  It is run as one attempt at READ COMMITTED: begin, work, commit.  If it
collides with others - in any statement or at COMMIT - the whole attempt is rolled back and run again in a fresh
transaction, after a short random pause, a bounded number of times.  Nothing is ever tried again inside a transaction,
and nothing that an attempt learned outlives it: both are how capacity is overrun (see docs/adr/0002).

A read runs without a transaction, every statement on its own snapshot: who needs two statements reads the generation
first, so that what it shows is at least as new as the generation it names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection, CursorResult

from placement import errors, signals
from placement.db import bulkhead, dialects, driver_errors, feed, sqlite_file, statements
from placement.db.driver_errors import Trouble
from placement.db.timeouts import LOCK_TIMEOUT, PATIENT

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")

#: Attempts of a write when its route does not say otherwise.
ATTEMPTS = 10
#: Seconds between two attempts, and until no further one is begun.
_LONGEST_PAUSE = 0.1
_LONGEST_WRITE = 60.0
#: How often an attempt may require something else first; more than once only if that was lost or removed meanwhile.
_PREREQUISITES = 10


if TYPE_CHECKING:
    Rows = CursorResult[*tuple[Any, ...]]


class Reading(Protocol):
    """What ``db`` is to a function that only reads: a connection, or the transaction of a write."""

    def execute(self, statement: Any, parameters: Any = None, /) -> Rows: ...


class Again(Exception):
    """Raised by an attempt that finds its data changed since it was read: roll back, and run it again."""


class Prerequisite(Exception):
    """Raised at the end of an attempt that is to be rolled back, and run again once ``work`` is committed."""

    def __init__(self, work: Callable[[Transaction], object]) -> None:
        self.work = work


class Transaction:
    """One attempt of a write: a connection, and what it changed."""

    __slots__ = ("_changes", "_connection", "_prerequisite", "attempt")

    def __init__(self, connection: Connection, attempt: int = 1) -> None:
        self._connection = connection
        self._changes: dict[int, str] = {}
        self._prerequisite: Callable[[Transaction], object] | None = None
        #: 1, and one more each time that the attempt before collided with others.
        self.attempt = attempt

    @property
    def dialect(self) -> str:
        """The kind of database."""
        return self._connection.dialect.name

    def execute(self, statement: Any, parameters: Any = None, /) -> Rows:
        return self._connection.execute(statement, parameters)

    def changed(self, provider_id: int, what: str) -> None:
        """Have the feed say, with this transaction's commit, that the provider changed."""
        self._changes[provider_id] = feed.stronger(self._changes.get(provider_id), what)

    def require(self, work: Callable[[Transaction], object]) -> None:
        """Have this attempt rolled back at its end, unless it fails, and run again once ``work`` is committed.

        For what must outlive this transaction and not wait for it, and yet is not to be done for a request that is
        refused.  An attempt can require one thing.
        """
        self._prerequisite = work

    def check_prerequisite(self) -> None:
        """Raise Prerequisite if the attempt requires something."""
        if self._prerequisite is not None:
            raise Prerequisite(self._prerequisite)

    def record(self, writer: feed.Writer) -> int:
        """The number of the writer's newest transaction once this one is committed; its rows are in the feed then."""
        return writer.record(self._connection, self._changes) if self._changes else writer.seq


class _Turn:
    """A lock that the same thread may take again; a thread that waits too long for it collides, as at a database."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=LOCK_TIMEOUT):
            raise Again

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Database:
    """One database: its connections, its transactions and its feed's writers.

    Threads share it.  A forked child uses no connection and no writer of its parent: both remember the process
    they were made in, since servers written in C (uWSGI) fork without telling Python.
    """

    def __init__(self, url: str | sa.URL, **options: Any) -> None:
        self.url = dialects.normalise(url)
        self._setup = dialects.Setup.of(self.url, **options)
        self.engine = dialects.writing_engine(self._setup)
        self.reading_engine = dialects.reading_engine(self._setup, self.engine)
        self._probing_engine = dialects.probing_engine(self._setup, self.reading_engine)
        self.bulkhead = bulkhead.Bulkhead()
        self.writers = feed.Writers()
        # SQLite has one writer at a time: threads queue here instead of polling the file's lock.
        sqlite = self.url.get_backend_name() == "sqlite"
        self._turn: Any = _Turn() if sqlite else contextlib.nullcontext()
        # A database in memory is one connection, which readers share too.
        self._reading_turn: Any = self._turn if dialects.in_memory(self.url) else contextlib.nullcontext()

    def clock_statements(self) -> None:
        """Have the seconds of every statement told as part of its request, from now on; for the start."""
        for engine in {self.engine, self.reading_engine}:
            statements.clock(engine)

    def dispose(self) -> None:
        """Close all idle connections."""
        self.engine.dispose()
        self.reading_engine.dispose()
        self._probing_engine.dispose()

    @contextlib.contextmanager
    def patient_engine(self) -> Iterator[sa.Engine]:
        """An engine whose statements may take as long as they need, for changes of the schema."""
        if dialects.in_memory(self.url):
            yield self.engine
            return
        engine = dialects.writing_engine(dataclasses.replace(self._setup, timeouts=PATIENT))
        try:
            yield engine
        finally:
            engine.dispose()

    def probe(self, work: Callable[[Reading], Result]) -> Result:
        """What ``work(db)`` returns, within seconds; raises DatabaseUnavailable, or an error that the server answers.

        It has a connection of its own, which no request waits for.
        """
        deadline = time.monotonic() + dialects.PROBING.connect / 2
        while True:
            try:
                with self._reading_turn, self._probing_engine.connect() as connection:
                    return work(connection)
            except exc.SQLAlchemyError as error:
                if driver_errors.of(error) is not Trouble.LOST:
                    _raise_for_operator(error)
                    raise
                # A connection that was lost at once is replaced; one that was silent has used up the time.
                if time.monotonic() > deadline:
                    raise self._unavailable(error) from error
                time.sleep(0.1)

    def read(self, work: Callable[[Reading], Result]) -> Result:
        """What ``work(db)`` returns; raises DatabaseUnavailable."""

        def attempt() -> Result:
            with self._reading_turn, self.reading_engine.connect() as connection:
                return work(connection)

        return self._insist(attempt, ATTEMPTS, errors.DatabaseUnavailable)

    def snapshot(self, work: Callable[[Connection], Result]) -> Result:
        """What ``work(db)`` returns, where all that it reads is one committed state; raises DatabaseUnavailable."""

        def attempt() -> Result:
            with self._reading_turn, self.reading_engine.connect() as connection, dialects.snapshot(connection):
                return work(connection)

        return self._insist(attempt, ATTEMPTS, errors.DatabaseUnavailable)

    def write(
        self,
        work: Callable[[Transaction], Result],
        *,
        attempts: int = ATTEMPTS,
        exhausted: type[errors.Conflict] = errors.TooManyConflicts,
    ) -> Result:
        """What ``work(db)`` returned in the attempt that was committed.

        Raises ``exhausted`` if every attempt collided with others, DatabaseUnavailable if the server cannot be reached
        (then nothing was changed), DatabaseBusy if too many threads wait for it, and OutcomeUnknown if it went away
        during COMMIT.
        """
        deadline = time.monotonic() + _LONGEST_WRITE
        for round_ in range(_PREREQUISITES):
            numbers = itertools.count(1)
            try:
                return self._insist(
                    lambda: self._attempt(work, next(numbers)),  # noqa: B023
                    *(attempts, exhausted, deadline),
                )
            except Prerequisite as needed:
                # What is made for the first attempt is made for one more, however late it is.
                if round_ and time.monotonic() > deadline:
                    break
                self.write(needed.work, exhausted=exhausted)
        raise exhausted()

    @signals.timed("database")
    def _insist(
        self,
        attempt: Callable[[], Result],
        attempts: int,
        exhausted: type[errors.Failure],
        deadline: float | None = None,
    ) -> Result:
        """What ``attempt()`` returns, the first time that it neither collides nor loses its connection twice."""
        deadline = time.monotonic() + _LONGEST_WRITE if deadline is None else deadline
        with self.bulkhead.entered():
            lost_before = False
            for number in range(1, attempts + 1):
                began = time.monotonic()
                try:
                    return attempt()
                except Again:
                    cause: signals.RetryCause = "changed"
                    reason = "the data changed since it was read"
                except (exc.SQLAlchemyError, UnicodeError, OverflowError) as error:
                    cause, reason = driver_errors.name(error), driver_errors.sentence(error)
                    signals.driver_error(cause)
                    lost = self._judge(error, began) is Trouble.LOST
                    last = number == attempts or time.monotonic() > deadline
                    if lost and (lost_before or last):
                        raise self._unavailable(error) from error
                    lost_before = lost_before or lost
                LOG.debug("attempt %d failed: %s", number, reason)
                if time.monotonic() > deadline:
                    break
                if number < attempts:
                    signals.retried(cause)
                    time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.001 * 2**number)))
            raise exhausted()

    def _judge(self, error: exc.SQLAlchemyError | UnicodeError | OverflowError, began: float) -> Trouble:
        """The kind of an error after which the attempt, begun at ``began``, may be run again; raises for others."""
        kind = driver_errors.of(error)
        if kind is Trouble.VALUE:
            raise errors.InvalidValue() from error
        if kind in (Trouble.BUG, Trouble.DENIED):
            _raise_for_operator(error)
            raise error
        if kind is Trouble.LOST:
            self._leave_lost_server(error, began)
        return kind

    def _leave_lost_server(self, error: Exception, began: float) -> None:
        """Use nothing again that was made before the server was lost: connections of either pool, writers of the feed.

        The server that answers next may be another one, or the same without its newest commits.  An error that leaves
        the connection in order says nothing of that, and one of a connection that could not be made does not either.
        """
        if isinstance(error, exc.DBAPIError) and (error.connection_invalidated or driver_errors.is_read_only(error)):
            self.writers.drop_idle()
            self._setup.freshness.renew(began)

    def _attempt(self, work: Callable[[Transaction], Result], number: int) -> Result:
        with self._turn:
            writer = self.writers.borrow(self.engine)
            try:
                connection = self.engine.connect()
            except BaseException:
                self.writers.give_back(writer)
                raise
            with connection:
                result = self._transact(work, Transaction(connection, number), connection, writer)
        if writer.tidy_due():
            self._tidy(writer)
        return result

    def _transact(
        self,
        work: Callable[[Transaction], Result],
        transaction: Transaction,
        connection: Connection,
        writer: feed.Writer,
    ) -> Result:
        try:
            connection.begin()
            result = work(transaction)
            transaction.check_prerequisite()
        except BaseException:
            # Nothing was recorded under the writer's number yet: it may be used again, even if the rollback fails.
            self.writers.give_back(writer)
            raise
        try:
            seq = transaction.record(writer)
            self._commit(connection)
        except exc.DBAPIError as error:
            # A duplicate or a missing parent says that others have cleared the writer away.
            if driver_errors.of(error) is Trouble.COLLISION and not isinstance(error, exc.IntegrityError):
                self.writers.give_back(writer)
            raise
        writer.seq = seq
        self.writers.give_back(writer)
        return result

    def _commit(self, connection: Connection) -> None:
        try:
            _commit(connection)
        except exc.SQLAlchemyError as error:
            if driver_errors.of(error) is Trouble.LOST and not driver_errors.is_read_only(error):
                LOG.error("The answer to a COMMIT was lost: %s", driver_errors.sentence(error))
                self._leave_lost_server(error, time.monotonic())
                raise errors.OutcomeUnknown() from error
            raise

    def _tidy(self, writer: feed.Writer) -> None:
        """Tidy the feed after the commit of a request, which does not fail if this does."""
        try:
            with self._turn:
                writer.tidy(self.engine)
        except Exception as error:
            LOG.warning("The change feed could not be tidied: %s", driver_errors.sentence(error))

    def _unavailable(self, error: BaseException) -> errors.Unavailable:
        _raise_for_operator(error)
        LOG.error("The database does not answer: %s", driver_errors.sentence(error))
        return errors.DatabaseUnavailable()

    def wait_until_reachable(self, max_retries: int = 10, retry_interval: float = 10) -> None:
        """Return once the server answers, tried once and ``max_retries`` times more (-1: without end).

        Raises DatabaseUnavailable after that, and at once if the server answers with an error that time does not mend.
        """
        tries = 0
        while True:
            try:
                with self.reading_engine.connect() as connection:
                    connection.execute(sa.select(1))
                return
            except exc.SQLAlchemyError as error:
                if driver_errors.of(error) is not Trouble.LOST or 0 <= max_retries <= tries:
                    raise self._unavailable(error) from error
                LOG.warning("The database does not answer yet: %s", driver_errors.sentence(error))
            tries += 1
            time.sleep(retry_interval)


def _raise_for_operator(error: BaseException) -> None:
    """Raise TablesMissing or DatabaseRefuses if the error means that: an operator has to act."""
    if driver_errors.is_missing_table(error):
        LOG.error("The database lacks tables of this service: %s", driver_errors.sentence(error))
        raise errors.TablesMissing() from error
    if driver_errors.is_refusal(error):
        LOG.error("The database refuses the service: %s", driver_errors.sentence(error))
        raise errors.DatabaseRefuses() from error


@signals.timed("sql")
def _commit(connection: Connection) -> None:
    connection.commit()


@contextlib.contextmanager
def opened(url: str | sa.URL, **options: Any) -> Iterator[Database]:
    """A database for the length of a block."""
    database = Database(url, **options)
    try:
        yield database
    finally:
        database.dispose()


def connect(conf: Any, *, patient: bool = False) -> Database:
    """The database that ``[placement_database]`` of the configuration names; no connection is opened yet.

    :param patient: whether statements may take as long as they need, for commands
    """
    group = conf.placement_database
    url = dialects.normalise(group.connection)
    if group.connection_parameters:
        url = url.update_query_string(group.connection_parameters)
    options = {
        "connect_timeout": group.connect_timeout,
        "read_timeout": group.read_timeout,
        "pool_size": group.max_pool_size,
        "max_overflow": group.max_overflow,
        "pool_timeout": group.pool_timeout,
        "pool_recycle": group.connection_recycle_time,
        "mysql_sql_mode": group.mysql_sql_mode,
        "sqlite_synchronous": group.sqlite_synchronous,
    }
    statements.log(group.connection_debug)
    sqlite_file.make_private(url)
    chosen = {name: value for name, value in options.items() if value is not None}
    database = Database(url, **chosen | ({"read_timeout": None} if patient else {}))
    if group.connection_trace:
        for opened_engine in (database.engine, database.reading_engine):
            statements.trace(opened_engine)
    return database
