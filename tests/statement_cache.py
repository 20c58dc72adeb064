"""Compiled statements that all engines of a test process share.

SQLAlchemy and placement.db.engine.compiled compile a statement once per dialect, and each test has its own engines,
each with a dialect, which would take a sixth of the time of tests with a database.  Here dialects of one kind are
equal, and the first one of each kind is kept.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect

_STATEMENTS: dict[Any, Any] = {}
_FIRST: set[DefaultDialect] = set()


def share() -> None:
    """Make all engines use one cache."""
    DefaultDialect.__eq__ = lambda self, other: _kind(self) == _kind(other)  # type: ignore[method-assign]
    DefaultDialect.__hash__ = lambda self: hash(_kind(self))  # type: ignore[method-assign]
    sa.event.listen(sa.Engine, "engine_connect", _use)


def _use(connection: sa.Connection) -> None:
    connection.execution_options(compiled_cache=_STATEMENTS)
    _FIRST.add(connection.dialect)


def _kind(dialect: Any) -> tuple[Any, ...]:
    """Return the properties of a dialect that SQL depends on."""
    # MySQL's quotes and escapes depend on sql_mode.
    mode = getattr(dialect, "_server_ansiquotes", None), getattr(dialect, "_backslash_escapes", None)
    return dialect.name, dialect.driver, getattr(dialect, "server_version_info", None), mode
