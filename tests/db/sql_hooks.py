"""Hooks that count the statements to a database, or make them fail."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import sqlalchemy as sa

#: Several INSERTs may be one statement of MariaDB, or of PostgreSQL.
WRITES = ("CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE", "BEGIN NOT ATOMIC", "WITH insert_")


class PowerCut(Exception):
    """The interruption that a test injects."""


@contextlib.contextmanager
def statements(engine: sa.Engine | type[sa.Engine], observe: Callable[[str], None]) -> Iterator[None]:
    """Call ``observe`` with each statement before it is executed; the statement raises its exceptions."""

    def before(connection, cursor, statement, parameters, context, executemany):
        observe(" ".join(statement.split()))

    sa.event.listen(engine, "before_cursor_execute", before)
    try:
        yield
    finally:
        sa.event.remove(engine, "before_cursor_execute", before)


@contextlib.contextmanager
def writes(engine: sa.Engine | type[sa.Engine]) -> Iterator[list[str]]:
    """Yield a growing list of the statements that write; ``engine`` may be the class of all engines."""
    written: list[str] = []
    with statements(engine, lambda statement: written.append(statement) if statement.startswith(WRITES) else None):
        yield written


@contextlib.contextmanager
def power_cut(engine: sa.Engine, at: Callable[[str], bool]) -> Iterator[None]:
    """Raise PowerCut instead of the first statement for which ``at`` is true."""

    def cut(statement: str) -> None:
        if at(statement):
            raise PowerCut(statement)

    with statements(engine, cut):
        yield
