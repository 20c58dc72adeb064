"""Contradictions between the history of a database and its tables; none if no extension records a history."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from placement.db.database import Database

with contextlib.suppress(ModuleNotFoundError):
    from tests.db.extensions import replay


def untruths(database: Database) -> list[Any]:
    """Return events that contradict the tables, and differences between the tables and the replayed events."""
    return [] if database.recorder is None else replay.untruths(database)


def follower(database: Database) -> Callable[[], object]:
    """Return a function that raises AssertionError unless the events since its last call lead to the present tables."""
    return (lambda: None) if database.recorder is None else replay.Follower(database).check
