"""Another transaction acts exactly between two statements of ours, on databases that have more than one writer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa

from placement.db.database import Database


@contextlib.contextmanager
def just_before(
    database: Database, beginning: str | Callable[[str], bool], act: Callable[[], object]
) -> Iterator[None]:
    """Run ``act`` once, before the first statement of ours that begins so, or that ``beginning`` selects."""
    picks = beginning if callable(beginning) else lambda statement: statement.startswith(beginning)
    acted = []

    def see(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if not acted and picks(statement):
            acted.append(statement)
            act()

    sa.event.listen(database.engine, "before_cursor_execute", see)
    try:
        yield
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", see)
    assert acted


def locking(statement: str) -> bool:
    """Whether the statement locks rows that it reads."""
    return "FOR " in statement


def holding_consumers(statement: str) -> bool:
    """Whether the statement locks or writes rows of consumers, so that other transactions that change them wait."""
    writes = ("INSERT INTO consumers", "UPDATE consumers", "DELETE FROM consumers")
    return statement.startswith(writes) or ("consumers" in statement and locking(statement))
