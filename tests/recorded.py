"""What the history of a database says that its tables do not; nothing where no extension records it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from placement.db.database import Database

with contextlib.suppress(ModuleNotFoundError):
    from tests.db.extensions import replay


def untruths(database: Database) -> list[Any]:
    """Return what events say that is not true, and how tables differ from what the events make."""
    return [] if database.recorder is None else replay.untruths(database)


def differences(database: Database) -> dict[Any, Any]:
    """Return how the tables differ from what all events make of nothing."""
    if database.recorder is None:
        return {}
    return replay.differences(replay.replayed(database), replay.read(database))


def following(database: Database) -> Callable[[], object]:
    """Return a function that raises AssertionError if events since the last call do not make what is in the tables."""
    return (lambda: None) if database.recorder is None else replay.Follower(database).check
