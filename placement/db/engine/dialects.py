"""Engines for SQLite, MariaDB/MySQL and PostgreSQL: their URLs, options, sessions and transactions."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc, pool
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection, Engine

from placement.db.engine import tls
from placement.db.engine.freshness import Freshness
from placement.db.engine.timeouts import LOCK_TIMEOUT, Timeouts

#: Maximum length of a result of GROUP_CONCAT on MySQL and MariaDB, in bytes.
GROUP_CONCAT_MAX_LEN = 2**23
#: Key in a pooled connection's ``info``: its transaction was committed, and no other has begun since.
_COMMITTED = "committed"

_DRIVERS = {"postgresql": ("psycopg", "psycopg2"), "mysql": ("pymysql", "MySQLdb"), "mariadb": ("pymysql", "MySQLdb")}
_SQLALCHEMY_NAMES = {"MySQLdb": "mysqldb"}


def normalise(url: str | sa.URL) -> sa.URL:
    """Return the URL; if it names no driver, add an installed one.

    Raises:
        sqlalchemy.exc.ArgumentError: The URL is malformed; the message contains no part of it.
    """
    url = _parse_url(url)
    if "+" in url.drivername or url.drivername not in _DRIVERS:
        return url
    for module in _DRIVERS[url.drivername]:
        if importlib.util.find_spec(module) is not None:
            return url.set(drivername=f"{url.drivername}+{_SQLALCHEMY_NAMES.get(module, module)}")
    return url


def _parse_url(url: str | sa.URL) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except ValueError:  # its message quotes the text in place of the port, which may be part of a password
        parsed = None
    if parsed is None or "@" in (parsed.host or ""):
        raise exc.ArgumentError("the URL is invalid: in the user and the password, write @ as %40, : as %3A, / as %2F")
    return parsed


def in_memory(url: sa.URL) -> bool:
    """Whether the database is an in-memory SQLite database, which is used through one connection.

    SQLite allows several connections to a named one (``vfs=memdb``), but its lock timeout does not work there.
    """
    return url.get_backend_name() == "sqlite" and (
        url.database in (None, "", ":memory:") or url.query.get("vfs") == "memdb"
    )


#: The fields of a setup that are session settings, and options of Database.
_SESSION_SETTINGS = ("mysql_sql_mode", "mysql_wsrep_sync_wait", "sqlite_synchronous")


@dataclasses.dataclass(frozen=True, slots=True)
class Setup:
    """The settings that the engines of one database share."""

    url: sa.URL
    #: Options of SQLAlchemy's ``create_engine``.
    options: dict[str, Any]
    timeouts: Timeouts
    freshness: Freshness = dataclasses.field(default_factory=Freshness)
    mysql_sql_mode: str = "TRADITIONAL"
    mysql_wsrep_sync_wait: int = 7
    sqlite_synchronous: bool = True

    @classmethod
    def from_options(
        cls, url: sa.URL, *, connect_timeout: int = 5, read_timeout: int | None = 30, **options: Any
    ) -> Setup:
        """Return the setup for options of ``create_engine`` and session settings; times are in seconds."""
        session = {name: options[name] for name in _SESSION_SETTINGS if name in options}
        engine = {name: value for name, value in options.items() if name not in session}
        return cls(url, engine, Timeouts(connect_timeout, read_timeout), **session)

    @property
    def backend(self) -> str:
        return self.url.get_backend_name()


def writing_engine(setup: Setup) -> Engine:
    """Return the engine for transactions: READ COMMITTED; on SQLite, one writer at a time, from BEGIN on."""
    if setup.backend == "sqlite":
        engine = sa.create_engine(setup.url, **_sqlite_options(setup))
        sa.event.listen(engine, "begin", _begin_immediate)
    else:
        engine = sa.create_engine(setup.url, isolation_level="READ COMMITTED", **_server_options(setup))
    sa.event.listen(engine, "reset", _end_transaction)
    return _prepare(engine, setup, reads=False)


def reading_engine(setup: Setup, writing: Engine) -> Engine:
    """Return the engine for reads, in autocommit mode, which saves the round trips of BEGIN and ROLLBACK."""
    if in_memory(setup.url):
        return writing
    if setup.backend == "sqlite":
        engine = sa.create_engine(setup.url, **_sqlite_options(setup))
    else:
        engine = sa.create_engine(setup.url, isolation_level="AUTOCOMMIT", **_server_options(setup))
        # Autocommit mode needs no ROLLBACK; SQLAlchemy before 2.0.43 sends one anyway.
        engine.dialect.skip_autocommit_rollback = True
    if setup.backend in ("mysql", "mariadb"):
        sa.event.listen(engine, "connect", _set_up_reads)
    return _prepare(engine, setup, reads=True)


#: The timeouts of the connection for health checks.
PROBING = Timeouts(connect=2, silence=2)


def probing_engine(setup: Setup, reading: Engine) -> Engine:
    """Return an engine with one connection, for reads that must be answered within seconds."""
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
    """Run the block in a snapshot on a connection for reads: its statements see the state committed when it begins."""
    if in_memory(connection.engine.url):
        yield  # this is the only connection, so nothing else writes
        return
    try:
        connection.exec_driver_sql(_SNAPSHOT[connection.dialect.name])
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        # The transaction may still be open; the connection, back in the pool, would keep reading this state.
        connection.invalidate()
        raise


def upsert(dialect: str, column: sa.Column[Any], **values: sa.ColumnElement[Any]) -> sa.Insert:
    """Return an INSERT that locks the row with the same value of ``column``, if it exists, and sets ``values`` there.

    Args:
        column: The unique column.
        values: Expressions without parameters: PyMySQL sends many rows in one statement only if nothing is bound after
            the VALUES list.
    """
    if dialect in ("mysql", "mariadb"):
        return mysql.insert(column.table).on_duplicate_key_update(values)
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert(column.table).on_conflict_do_update(index_elements=[column], set_=values)


def skips_locked_rows(dialect: sa.Dialect) -> bool:
    """Whether the server supports ``FOR UPDATE SKIP LOCKED``; SQLite has no row locks."""
    if dialect.name in ("mysql", "mariadb"):
        minimum = (10, 6) if getattr(dialect, "is_mariadb", False) else (8,)
        return (dialect.server_version_info or ()) >= minimum
    return dialect.name == "postgresql"


def _set_up_reads(connection: Any, _record: Any) -> None:
    """Enable snapshots, regardless of the server's default isolation level."""
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _server_options(setup: Setup) -> dict[str, Any]:
    connect_args = setup.timeouts.connect_args(setup.url) | tls.connect_args(setup.url)
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


def _session_statements(setup: Setup, *, reads: bool) -> list[str]:
    """Return the statements that set up a session."""
    backend = setup.backend
    if backend == "sqlite":
        return [
            f"PRAGMA synchronous = {'FULL' if setup.sqlite_synchronous else 'NORMAL'}",
            "PRAGMA foreign_keys = ON",
        ]
    waits = setup.timeouts.session_variables(backend, reads=reads)
    if backend in ("mysql", "mariadb"):
        variables = ["time_zone = '+00:00'", f"innodb_lock_wait_timeout = {LOCK_TIMEOUT}", *waits]
        # By default, MySQL truncates results of GROUP_CONCAT at 1024 bytes.
        variables.append(f"group_concat_max_len = {GROUP_CONCAT_MAX_LEN}")
        if setup.mysql_sql_mode:
            variables.insert(0, f"sql_mode = '{setup.mysql_sql_mode}'")
        return [f"SET SESSION {', '.join(variables)}"]
    if backend == "postgresql":
        # JIT compilation would take longer than any statement itself: more than a second for one that lists objects.
        variables = ["TIME ZONE 'UTC'", "jit = off", f"lock_timeout = '{LOCK_TIMEOUT}s'", *waits]
        return ["; ".join(f"SET {variable}" for variable in variables)]
    return []


def _prepare(engine: Engine, setup: Setup, *, reads: bool) -> Engine:
    """Set up the session of every new connection of the engine; return the engine."""
    backend = setup.backend
    statements = _session_statements(setup, reads=reads)
    setup.timeouts.apply(engine)
    tls.apply(engine)

    def set_up(connection: Any, _record: Any) -> None:
        if backend == "sqlite":
            # By default the driver begins a transaction before the first INSERT.
            connection.isolation_level = None
            _enable_write_ahead_log(connection)
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        if backend in ("mysql", "mariadb"):
            _wait_for_other_nodes(cursor, setup.mysql_wsrep_sync_wait)
        cursor.close()
        if backend == "postgresql" and not connection.autocommit:
            connection.commit()

    sa.event.listen(engine, "connect", set_up)
    if not in_memory(engine.url):
        setup.freshness.watch(engine, reads=reads)
    return engine


def _wait_for_other_nodes(cursor: Any, sync_wait: int) -> None:
    """Have a Galera node apply the commits of other nodes before certain statements (ADR 41).

    Args:
        sync_wait: The kinds of statements that wait, as a bit mask: the value of ``wsrep_sync_wait``, a variable that
            other servers may lack.
    """
    cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
    variable = cursor.fetchone()
    if variable and variable[1] == "ON":
        cursor.execute(f"SET SESSION wsrep_sync_wait = {sync_wait}")


def _enable_write_ahead_log(connection: Any) -> None:
    """Switch the file to write-ahead logging; wait for other connections: SQLite's timeout does not apply."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def commit(connection: Connection) -> None:
    """Commit the transaction; the connection must then return to its pool."""
    connection.commit()
    connection.info[_COMMITTED] = True


def _end_transaction(connection: Any, record: Any, _state: Any) -> None:
    """Roll back an open transaction when its connection returns to the pool.

    After a COMMIT none is open, but MySQL's drivers would send a ROLLBACK all the same.  After a failed COMMIT one may
    be open, although SQLAlchemy considers the transaction ended, and reports that it was reset.

    A connection that was detached from the pool has no record, and is closed next.
    """
    is_committed = record is not None and record.info.pop(_COMMITTED, False)
    if not is_committed:
        connection.rollback()
