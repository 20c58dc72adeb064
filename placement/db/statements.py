"""Statements made visible, for who looks for the reason of something: in the log, to the database, by the clock."""

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

_PACKAGE = Path(__file__).parent.parent
#: What every statement passes through, and so says nothing of where it comes from.
_MACHINERY = {str(_PACKAGE / "db" / name) for name in ("engine.py", "dialects.py", "statements.py")}
_MACHINERY.add(str(_PACKAGE / "signals.py"))
#: When this thread's statement was sent; a thread has one at a time.
_sent = threading.local()


def log(verbosity: int) -> None:
    """Have statements logged from 50 on, and what they return at 100.  Concerns engines that are made afterwards."""
    if verbosity >= 50:
        logging.getLogger("sqlalchemy.engine").setLevel(logging.DEBUG if verbosity >= 100 else logging.INFO)


def trace(engine: Engine) -> None:
    """Let each statement of the engine carry a comment that says which line of this program it comes from."""
    sa.event.listen(engine, "before_cursor_execute", _comment, retval=True)


def clock(engine: Engine) -> None:
    """Have the seconds of each statement of the engine told as a part of its request.

    BEGIN is one, where it is sent; a COMMIT is told by whoever sends it.  So is one that failed: waiting in vain for a
    lock is why its request was slow.
    """
    sa.event.listen(engine, "before_cursor_execute", _begins)
    sa.event.listen(engine, "after_cursor_execute", _ends)
    sa.event.listen(engine, "handle_error", _fails)


def _begins(*_: Any) -> None:
    _sent.at = time.perf_counter()


def _ends(*_: Any) -> None:
    signals.timing("sql", time.perf_counter() - _sent.at)


def _fails(failed: Any) -> None:
    if failed.execution_context is not None:  # otherwise nothing was sent
        _ends()


def _comment(
    _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
) -> tuple[str, Any]:
    frame: FrameType | None = sys._getframe()
    while frame is not None and not _tells(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return statement, parameters
    path = Path(frame.f_code.co_filename).relative_to(_PACKAGE.parent)
    return f"{statement} /* {path}:{frame.f_lineno} */", parameters


def _tells(path: str) -> bool:
    return path.startswith(str(_PACKAGE)) and path not in _MACHINERY
