"""Faults of a database, in the middle of a request: real errors of the real driver, at a statement or a COMMIT.

Collisions are what the server itself answers when it is told to signal them; a lost connection is one whose socket was
shut down, or that the server was told to kill.  SQLite has no server: its errors are made by hand, and losing the
connection is closing it.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pymysql
import sqlalchemy as sa

from placement.db.database import Database

#: Does its harm to a connection; raises, or leaves it to the statement to fail.
Harm = Callable[[Any], None]


@dataclass
class Plan:
    """Harms to come: the first at the statement ``at``, the next when the same statement comes again."""

    #: Which one meets the first harm: by its number, or by what it begins with.
    at: int | str = 0
    harms: Sequence[Harm] = ()
    #: Whether the last harm is done to everything that follows.
    for_ever: bool = False
    #: Whether the statement is executed first, so that only its answer is lost.
    answer_only: bool = False
    seen: list[str] = field(default_factory=list)
    done: int = 0
    #: The statement that met the first harm, if it came so far.
    victim: str | None = None

    def step(self, statement: str, connection: Any, execute: Callable[[], None]) -> None:
        """Called with every statement that is about to be executed, and with every COMMIT."""
        self.seen.append(statement)
        if not self._due(statement):
            return
        harm = self.harms[min(self.done, len(self.harms) - 1)]
        self.done += 1
        self.victim = self.victim or statement
        if self.answer_only:
            execute()
        harm(connection)
        if self.answer_only:
            connection.cursor().execute("SELECT 1")  # what notices that the answer is lost

    def _due(self, statement: str) -> bool:
        if self.done == 0:
            return statement.startswith(self.at) if isinstance(self.at, str) else len(self.seen) == self.at
        return self.for_ever or (self.done < len(self.harms) and statement == self.victim)


def planted(database: Database, plan: Plan) -> None:
    """From now on, whatever the database's connections do goes by the plan."""
    for engine in {database.engine, database.reading_engine}:
        _watch(engine, plan)


def _watch(engine: sa.Engine, plan: Plan) -> None:
    dialect = engine.dialect
    commit = dialect.do_commit

    # SQLAlchemy lets these take the place of the execution, and treats what they raise as the driver's errors.
    def execute(cursor: Any, statement: str, parameters: Any, context: Any) -> None:
        plan.step(statement, context.root_connection.connection, lambda: cursor.execute(statement, parameters))

    def execute_many(cursor: Any, statement: str, parameters: Any, context: Any) -> None:
        plan.step(statement, context.root_connection.connection, lambda: cursor.executemany(statement, parameters))

    def do_commit(connection: Any) -> None:
        plan.step("COMMIT", connection, lambda: commit(connection))
        commit(connection)

    sa.event.listen(engine, "do_execute", execute)
    sa.event.listen(engine, "do_executemany", execute_many)
    # There is no event for COMMIT whose errors would be treated as the driver's.
    dialect.do_commit = do_commit  # type: ignore[method-assign]


# --- harms -----------------------------------------------------------------------------------------------------------


def collisions(kind: str) -> list[Harm]:
    """Deadlock, lock wait timeout, serialization failure, as this kind of database tells of them."""
    return [*_COLLISIONS[kind]]


def _signal(number: int, state: str, *, rolls_back: bool) -> Harm:
    def harm(connection: Any) -> None:
        if rolls_back:
            connection.rollback()
        connection.cursor().execute(f"SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'planted'")

    return harm


def _raise(state: str) -> Harm:
    def harm(connection: Any) -> None:
        connection.cursor().execute(f"DO $$ BEGIN RAISE EXCEPTION 'planted' USING ERRCODE = '{state}'; END $$")

    return harm


def _refuse(code: int, sentence: str) -> Harm:
    def harm(connection: Any) -> None:
        error = sqlite3.OperationalError(sentence)
        error.sqlite_errorcode = code
        raise error

    return harm


_COLLISIONS: dict[str, tuple[Harm, ...]] = {
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
    """The network fails: nothing comes through any more, in either direction."""
    driver = connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.close()
        return
    number = driver.pgconn.socket if hasattr(driver, "pgconn") else driver._sock.fileno()
    with socket.socket(fileno=os.dup(number)) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def kill(connection: Any) -> None:
    """The server ends the connection, at the word of another one; SQLite's is just closed."""
    driver = connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.close()
    elif hasattr(driver, "pgconn"):
        with psycopg.connect(driver.info.dsn, password=driver.info.password) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [driver.info.backend_pid])
    else:
        with pymysql.connect(host=driver.host, port=driver.port, user=driver.user, password=driver.password) as other:
            other.cursor().execute(f"KILL {driver.thread_id()}")


LOSSES = (lose, kill)
