"""Interleavings: another transaction acts between two statements, on databases with more than one writer."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa

from placement.db.database import Database
from tests.clock import PATIENCE


def just_before(
    database: Database, beginning: str | Callable[[str], bool], act: Callable[[], object]
) -> AbstractContextManager[None]:
    """Run ``act`` once, before the first statement that begins with this text, or for which this predicate is true."""
    return _beside("before_cursor_execute", database, beginning, act)


def just_after(
    database: Database, beginning: str | Callable[[str], bool], act: Callable[[], object]
) -> AbstractContextManager[None]:
    """Run ``act`` once, after the first statement that begins with this text, or for which this predicate is true."""
    return _beside("after_cursor_execute", database, beginning, act)


@contextlib.contextmanager
def _beside(
    event: str, database: Database, beginning: str | Callable[[str], bool], act: Callable[[], object]
) -> Iterator[None]:
    picks = beginning if callable(beginning) else lambda statement: statement.startswith(beginning)
    acted = []

    def see(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if not acted and picks(statement):
            acted.append(statement)
            act()

    sa.event.listen(database.engine, event, see)
    try:
        yield
    finally:
        sa.event.remove(database.engine, event, see)
    assert acted


_WAITING = sa.text("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
_SESSIONS = sa.text("SELECT id FROM information_schema.processlist WHERE db = DATABASE()")
_OF_MARIADB = re.compile(r"^LOCK WAIT .*\n(?:.*\n)??MariaDB thread id (\d+)", re.MULTILINE)


def _waits(connection: sa.Connection) -> bool:
    """Whether a transaction waits for a lock of another one."""
    if connection.dialect.name == "postgresql":
        return bool(connection.execute(_WAITING).all())
    # The tables of information_schema about transactions are out of date.
    [(_, _, status)] = connection.exec_driver_sql("SHOW ENGINE INNODB STATUS")
    return not {*map(int, _OF_MARIADB.findall(status))}.isdisjoint(connection.execute(_SESSIONS).scalars())


def wait_for_lock(database: Database) -> None:
    """Wait until a transaction waits for a lock of another one."""
    until = time.monotonic() + PATIENCE
    with database.reading_engine.connect() as connection:
        while not _waits(connection):
            assert time.monotonic() < until, "no transaction waits"
            time.sleep(0.01)


def locking(statement: str) -> bool:
    """Whether the statement locks the rows that it reads."""
    return "FOR " in statement


def holding_consumers(statement: str) -> bool:
    """Whether the statement locks or writes rows of consumers, so that other writers of them wait."""
    writes = ("INSERT INTO consumers", "UPDATE consumers", "DELETE FROM consumers")
    return statement.startswith(writes) or ("consumers" in statement and locking(statement))
