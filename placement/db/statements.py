"""Statements made visible, for who looks for the reason of something: in the log, and to the database."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

_PACKAGE = Path(__file__).parent.parent
#: What every statement passes through, and so says nothing of where it comes from.
_MACHINERY = {str(_PACKAGE / "db" / name) for name in ("engine.py", "dialects.py", "statements.py")}


def log(verbosity: int) -> None:
    """Have statements logged from 50 on, and what they return at 100.  Concerns engines that are made afterwards."""
    if verbosity >= 50:
        logging.getLogger("sqlalchemy.engine").setLevel(logging.DEBUG if verbosity >= 100 else logging.INFO)


def trace(engine: Engine) -> None:
    """Let each statement of the engine carry a comment that says which line of this program it comes from."""
    sa.event.listen(engine, "before_cursor_execute", _comment, retval=True)


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
