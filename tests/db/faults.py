"""Fault injection: errors of the real driver, at a statement or a COMMIT of a request.

Collisions are errors that the server itself signals on request.  A connection is lost by a shutdown of its socket, or
by a KILL on the server.  SQLite has no server: its errors are constructed, and its connection is closed.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pymysql
import sqlalchemy as sa

from placement.db.database import Database

#: A fault of a connection, which raises or makes the next statement fail.
Fault = Callable[[Any], None]

_NUMBER = re.compile(r"\b\d+\b")
_OPENS = re.compile(r"BEGIN( IMMEDIATE| ISOLATION LEVEL .*)?|START TRANSACTION .*")


@dataclass
class Plan:
    """Faults to inject: the first at the statement ``at``, the next when the same statement is executed again."""

    #: The statement of the first fault: its number, or the beginning of its text.
    at: int | str = 0
    faults: Sequence[Fault] = ()
    #: Further statements by their text, each with faults that are injected after the previous ones.
    then: Sequence[tuple[str, Sequence[Fault]]] = ()
    #: Whether the last fault is repeated for all further statements.
    permanent: bool = False
    #: Whether the statement is executed first, so that only its response is lost.
    answer_only: bool = False
    seen: list[str] = field(default_factory=list)
    #: The number of faults injected at the current statement.
    injected: int = 0
    #: The statement at which the current faults are injected; and the statements of the earlier faults.
    victim: str | None = None
    earlier: list[str] = field(default_factory=list)

    @property
    def statements_without_begin(self) -> list[str]:
        """Return the statements except those that only open a transaction; BEGIN NOT ATOMIC of MariaDB does more."""
        return [statement for statement in self.seen if not _OPENS.fullmatch(statement)]

    def step(self, statement: str, connection: Any, execute: Callable[[], None]) -> None:
        """Handle a statement or COMMIT that is about to be executed.

        Statements that differ only in numbers are equal, because for some drivers the text contains numbers
        (``placement.db.engine.compiled``), which differ in the next attempt.
        """
        statement = _NUMBER.sub("#", statement)
        self.seen.append(statement)
        if not self._is_due(statement):
            return
        fault = self.faults[min(self.injected, len(self.faults) - 1)]
        self.injected += 1
        self.victim = self.victim or statement
        if self.then and self.injected == len(self.faults):
            self.earlier.append(statement)
            (self.at, self.faults), *self.then = self.then
            self.injected, self.victim = 0, None
        if self.answer_only:
            execute()
        fault(connection)
        if self.answer_only:
            connection.cursor().execute("SELECT 1")  # fails because the response is lost

    def _is_due(self, statement: str) -> bool:
        if self.injected == 0:
            return statement.startswith(self.at) if isinstance(self.at, str) else len(self.seen) == self.at
        return self.permanent or (self.injected < len(self.faults) and statement == self.victim)


def plant(database: Database, plan: Plan) -> contextlib.ExitStack:
    """Apply the plan to all connections of the database until the result is closed."""
    planting = contextlib.ExitStack()
    for engine in {database.engine, database.reading_engine}:
        _watch(engine, plan, planting)
    return planting


def _watch(engine: sa.Engine, plan: Plan, planting: contextlib.ExitStack) -> None:
    dialect = engine.dialect
    commit = dialect.do_commit

    # These replace the execution of a statement; SQLAlchemy treats their exceptions as errors of the driver.
    def execute(cursor: Any, statement: str, parameters: Any, context: Any) -> None:
        plan.step(statement, context.root_connection.connection, lambda: cursor.execute(statement, parameters))

    def execute_many(cursor: Any, statement: str, parameters: Any, context: Any) -> None:
        plan.step(statement, context.root_connection.connection, lambda: cursor.executemany(statement, parameters))

    def do_commit(connection: Any) -> None:
        plan.step("COMMIT", connection, lambda: commit(connection))
        commit(connection)

    for event, watcher in {"do_execute": execute, "do_executemany": execute_many}.items():
        sa.event.listen(engine, event, watcher)
        planting.callback(sa.event.remove, engine, event, watcher)
    # SQLAlchemy does not treat exceptions of listeners to "commit" as errors of the driver.
    dialect.do_commit = do_commit  # type: ignore[method-assign]
    planting.callback(setattr, dialect, "do_commit", commit)


# --- faults -----------------------------------------------------------------------------------------------------------


def collisions(kind: str) -> list[Fault]:
    """Return a deadlock, a lock wait timeout and a serialization failure as this kind of database reports them."""
    return [*_COLLISIONS[kind]]


def _signal(number: int, state: str, *, rolls_back: bool) -> Fault:
    def fault(connection: Any) -> None:
        if rolls_back:
            connection.rollback()
        connection.cursor().execute(f"SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'planted'")

    return fault


def _raise(state: str) -> Fault:
    def fault(connection: Any) -> None:
        connection.cursor().execute(f"DO $$ BEGIN RAISE EXCEPTION 'planted' USING ERRCODE = '{state}'; END $$")

    return fault


def _refuse(code: int, sentence: str) -> Fault:
    def fault(connection: Any) -> None:
        error = sqlite3.OperationalError(sentence)
        error.sqlite_errorcode = code
        raise error

    return fault


_COLLISIONS: dict[str, tuple[Fault, ...]] = {
    # Deadlock, which is also a failed certification; lock wait timeout; record changed since last read.
    "mariadb": (
        _signal(1213, "40001", rolls_back=True),
        _signal(1205, "HY000", rolls_back=False),
        _signal(1020, "HY000", rolls_back=True),
    ),
    # Deadlock, lock not available, serialization failure.
    "postgresql": (_raise("40P01"), _raise("55P03"), _raise("40001")),
    "sqlite": (
        _refuse(sqlite3.SQLITE_BUSY, "database is locked"),
        _refuse(sqlite3.SQLITE_LOCKED, "database table is locked"),
        _refuse(sqlite3.SQLITE_BUSY_SNAPSHOT, "database is locked"),
    ),
}


def lose(connection: Any) -> None:
    """Simulate a network failure: no data passes in either direction."""
    driver = connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.close()
        return
    number = driver.pgconn.socket if hasattr(driver, "pgconn") else driver._sock.fileno()
    with socket.socket(fileno=os.dup(number)) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def kill(connection: Any) -> None:
    """Kill the connection from another session; close a connection of SQLite."""
    driver = connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.close()
    elif hasattr(driver, "pgconn"):
        with psycopg.connect(driver.info.dsn, password=driver.info.password) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [driver.info.backend_pid])
    else:
        account = {"user": driver.user, "password": driver.password}
        # Encryption would make the driver read all certificates of the system.
        with pymysql.connect(host=driver.host, port=driver.port, **account, ssl_disabled=True) as other:
            other.cursor().execute(f"KILL {driver.thread_id()}")


LOSSES = (lose, kill)
