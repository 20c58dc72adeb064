"""What differs between SQLite, MariaDB/MySQL and PostgreSQL when connections are made."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc, pool
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection, Engine

from placement.db.freshness import Freshness
from placement.db.timeouts import LOCK_TIMEOUT, Timeouts

#: Bytes of a text that MySQL puts together from many rows.
_LONGEST_TEXT = 2**23
#: A bit of PyMySQL's server_status.
_IN_TRANSACTION = 1

_DRIVERS = {"postgresql": ("psycopg", "psycopg2"), "mysql": ("pymysql", "MySQLdb"), "mariadb": ("pymysql", "MySQLdb")}
_SQLALCHEMY_NAMES = {"MySQLdb": "mysqldb"}


def normalise(url: str | sa.URL) -> sa.URL:
    """The URL with a driver that is installed, where it names none; raises ArgumentError, which shows nothing of it."""
    url = _parsed(url)
    if "+" in url.drivername or url.drivername not in _DRIVERS:
        return url
    for module in _DRIVERS[url.drivername]:
        if importlib.util.find_spec(module) is not None:
            return url.set(drivername=f"{url.drivername}+{_SQLALCHEMY_NAMES.get(module, module)}")
    return url


def _parsed(url: str | sa.URL) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except ValueError:  # whose text is what stands where the port should be, and that may be part of a password
        parsed = None
    if parsed is None or "@" in (parsed.host or ""):
        raise exc.ArgumentError("what stands before the host is cut off too early: write @ as %40, : as %3A, / as %2F")
    return parsed


def in_memory(url: sa.URL) -> bool:
    """Whether the database is SQLite's and lives in this process, where one connection is all that it is given.

    One with a name (``vfs=memdb``) may have several, of several ``Database``; their locks are not waited for well.
    """
    return url.get_backend_name() == "sqlite" and (
        url.database in (None, "", ":memory:") or url.query.get("vfs") == "memdb"
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Setup:
    """What the engines of one database have in common."""

    url: sa.URL
    #: Of SQLAlchemy's engines.
    options: dict[str, Any]
    timeouts: Timeouts
    freshness: Freshness = dataclasses.field(default_factory=Freshness)
    mysql_sql_mode: str = "TRADITIONAL"
    sqlite_synchronous: bool = True

    @classmethod
    def of(cls, url: sa.URL, *, connect_timeout: int = 5, read_timeout: int | None = 30, **options: Any) -> Setup:
        """From options of the engine and settings of its sessions."""
        session = {name: options[name] for name in ("mysql_sql_mode", "sqlite_synchronous") if name in options}
        engine = {name: value for name, value in options.items() if name not in session}
        return cls(url, engine, Timeouts(connect_timeout, read_timeout), **session)

    @property
    def backend(self) -> str:
        return self.url.get_backend_name()


def writing_engine(setup: Setup) -> Engine:
    """Connections for transactions: READ COMMITTED, and for SQLite one writer at a time from BEGIN on."""
    if setup.backend == "sqlite":
        engine = sa.create_engine(setup.url, **_sqlite_options(setup))
        sa.event.listen(engine, "begin", _begin_immediate)
    else:
        engine = sa.create_engine(setup.url, isolation_level="READ COMMITTED", **_server_options(setup))
    sa.event.listen(engine, "reset", _end_transaction)
    return _prepared(engine, setup, reads=False)


def reading_engine(setup: Setup, writing: Engine) -> Engine:
    """Connections for reads: each statement for itself, which saves the round trips of BEGIN and ROLLBACK."""
    if in_memory(setup.url):
        return writing
    if setup.backend == "sqlite":
        engine = sa.create_engine(setup.url, **_sqlite_options(setup))
    else:
        engine = sa.create_engine(setup.url, isolation_level="AUTOCOMMIT", **_server_options(setup))
        # Where nothing was begun there is nothing to roll back; versions before 2.0.43 ask the server all the same.
        engine.dialect.skip_autocommit_rollback = True
    if setup.backend in ("mysql", "mariadb"):
        sa.event.listen(engine, "connect", _read_much)
    return _prepared(engine, setup, reads=True)


#: Of the connection that tells whether the database answers.
PROBING = Timeouts(connect=2, silence=2)


def probing_engine(setup: Setup, reading: Engine) -> Engine:
    """One connection, for reads that have to be answered within seconds."""
    if in_memory(setup.url):
        return reading
    options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": PROBING.connect}
    setup = dataclasses.replace(setup, options=setup.options | options, timeouts=PROBING)
    return reading_engine(setup, reading)


_SNAPSHOT = {
    "sqlite": "BEGIN",
    "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "mysql": "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "mariadb": "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
}


@contextlib.contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Have all statements of the block, on a connection for reads, see one committed state, as of its begin."""
    if in_memory(connection.engine.url):
        yield  # the only connection there is, so nothing else writes
        return
    try:
        connection.exec_driver_sql(_SNAPSHOT[connection.dialect.name])
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        # In its pool the connection would go on seeing the past.
        connection.invalidate()
        raise


def upsert(dialect: str, column: sa.Column[Any], **values: sa.ColumnElement[Any]) -> sa.Insert:
    """An INSERT that locks the row whose unique ``column`` is the same, and gives it ``values``, where there is one.

    ``values`` are expressions: PyMySQL puts many rows into one statement only if nothing is bound after them.
    """
    if dialect in ("mysql", "mariadb"):
        return mysql.insert(column.table).on_duplicate_key_update(values)
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert(column.table).on_conflict_do_update(index_elements=[column], set_=values)


def _read_much(connection: Any, _record: Any) -> None:
    """Have snapshots where the server was told to do without; and long texts, which MySQL cuts after 1024 bytes."""
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute(f"SET SESSION group_concat_max_len = {_LONGEST_TEXT}")


def _server_options(setup: Setup) -> dict[str, Any]:
    connect_args = setup.timeouts.connect_args(setup.url)
    return {"pool_reset_on_return": None, "connect_args": connect_args, **setup.options}


def _sqlite_options(setup: Setup) -> dict[str, Any]:
    connect_args = {"timeout": LOCK_TIMEOUT, "check_same_thread": False}
    options = setup.options
    if in_memory(setup.url):
        unpooled = {name: value for name, value in options.items() if not name.startswith(("pool_", "max_overflow"))}
        return {**unpooled, "connect_args": connect_args, "poolclass": pool.StaticPool}
    return {**options, "connect_args": connect_args}


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _session(setup: Setup, *, reads: bool) -> list[str]:
    """The statements that a session begins with."""
    backend = setup.backend
    if backend == "sqlite":
        return [
            f"PRAGMA synchronous = {'FULL' if setup.sqlite_synchronous else 'NORMAL'}",
            "PRAGMA foreign_keys = ON",
        ]
    waits = setup.timeouts.session(backend, reads=reads)
    if backend in ("mysql", "mariadb"):
        variables = ["time_zone = '+00:00'", f"innodb_lock_wait_timeout = {LOCK_TIMEOUT}", *waits]
        if setup.mysql_sql_mode:
            variables.insert(0, f"sql_mode = '{setup.mysql_sql_mode}'")
        return [f"SET SESSION {', '.join(variables)}"]
    if backend == "postgresql":
        variables = ["TIME ZONE 'UTC'", f"lock_timeout = '{LOCK_TIMEOUT}s'", *waits]
        return ["; ".join(f"SET {variable}" for variable in variables)]
    return []


def _prepared(engine: Engine, setup: Setup, *, reads: bool) -> Engine:
    """The engine, whose every new connection is given the settings of its session."""
    backend = setup.backend
    statements = _session(setup, reads=reads)
    setup.timeouts.bound(engine)

    def connected(connection: Any, _record: Any) -> None:
        if backend == "sqlite":
            # The driver must not begin transactions behind our back.
            connection.isolation_level = None
            _write_ahead(connection)
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        cursor.close()
        if backend == "postgresql" and not connection.autocommit:
            connection.commit()

    sa.event.listen(engine, "connect", connected)
    if not in_memory(engine.url):
        sa.event.listen(engine, "connect", _note_process)
        sa.event.listen(engine, "checkout", _check_process)
        setup.freshness.watch(engine, reads=reads)
    return engine


def _write_ahead(connection: Any) -> None:
    """Switch the file to WAL, once others let us: SQLite does not wait for this by itself."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _end_transaction(connection: Any, _record: Any, _state: Any) -> None:
    """Roll back what is still open when a connection returns to its pool.

    After a COMMIT nothing is.  The drivers of PostgreSQL know that; those of MySQL would ask the server all the same,
    though PyMySQL was told with the last answer.  After a COMMIT that failed something may be: SQLite leaves the
    transaction open, and SQLAlchemy does not look again.
    """
    if getattr(connection, "server_status", _IN_TRANSACTION) & _IN_TRANSACTION:
        connection.rollback()


def _note_process(_connection: Any, record: Any) -> None:
    record.info["process"] = os.getpid()


def _check_process(_connection: Any, record: Any, fairy: Any) -> None:
    """Nothing in the process that made the connection; a fork's child lets go of it, unclosed, and gets another."""
    if record.info["process"] != os.getpid():
        record.dbapi_connection = fairy.dbapi_connection = None
        raise exc.DisconnectionError("made in another process")
