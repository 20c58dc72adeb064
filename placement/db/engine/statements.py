"""Observation of SQL statements: in the log, in the database's own tools, and as timings."""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from placement import signals

_PACKAGE = Path(__file__).parents[2]
#: Files that every statement passes through, whose lines therefore do not identify its source.
_INTERNALS = tuple(
    str(_PACKAGE / name)
    for name in (
        "signals.py",
        "db/batches.py",
        "db/database.py",
        "db/engine",
        "db/writes/retry.py",
        "db/writes/transaction.py",
    )
)
#: The time at which this thread sent its statement; a thread sends one at a time.
_sent = threading.local()


def log(verbosity: int) -> None:
    """Log the statements of engines that are created afterwards, from verbosity 50 on; at 100, also their rows."""
    if verbosity >= 50:
        logging.getLogger("sqlalchemy.engine").setLevel(logging.DEBUG if verbosity >= 100 else logging.INFO)


def add_source_comments(engine: Engine) -> None:
    """Add a comment to each statement of the engine: the file and line of this package that it comes from."""
    sa.event.listen(engine, "before_cursor_execute", _add_comment, retval=True)


def publish(engine: Engine) -> None:
    """Publish each statement of the engine, and its duration as the timing "sql".

    BEGIN counts if it is sent as a statement; COMMIT is timed by its callers.  A failed statement also counts: a
    request may be slow because it waited for a lock until the timeout.
    """
    if sa.event.contains(engine, "before_cursor_execute", _begin):
        return
    sa.event.listen(engine, "before_cursor_execute", _begin)
    sa.event.listen(engine, "after_cursor_execute", _end)
    sa.event.listen(engine, "handle_error", _end_failed)


def _begin(*_: Any) -> None:
    _sent.at = time.perf_counter()


def _end(_connection: Any, _cursor: Any, statement: str, *_: Any, error: str = "") -> None:
    seconds = time.perf_counter() - _sent.at
    signals.timing("sql", seconds)
    signals.executed(statement, seconds, error)


def _end_failed(error: Any) -> None:
    if error.execution_context is not None:  # otherwise no statement was sent
        _end(None, None, error.statement, error=type(error.original_exception).__name__)


def _add_comment(
    _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
) -> tuple[str, Any]:
    frame: FrameType | None = sys._getframe()
    while frame is not None and not _is_source(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return statement, parameters
    path = Path(frame.f_code.co_filename).relative_to(_PACKAGE.parent)
    return f"{statement} /* {path}:{frame.f_lineno} */", parameters


def _is_source(path: str) -> bool:
    return path.startswith(str(_PACKAGE)) and not path.startswith(_INTERNALS)
