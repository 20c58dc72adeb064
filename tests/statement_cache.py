"""A cache of compiled statements that all engines of a test process share.

SQLAlchemy compiles a statement once per engine, and each test has engines of its own: a tenth of the time of tests.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa


class Statements(dict[Any, Any]):
    """Compiled statements by the kind of the engine's dialect instead of the dialect itself."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_of_kind(key), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__(_of_kind(key), compiled)


def share() -> None:
    """Have all engines use one cache."""
    statements = Statements()

    def use(connection: sa.Connection) -> None:
        connection.execution_options(compiled_cache=statements)

    sa.event.listen(sa.Engine, "engine_connect", use)


def _of_kind(key: Any) -> Any:
    """Return the key without the dialect, but with all that SQL depends on."""
    dialect, *rest = key
    # MySQL's quotes and escapes depend on sql_mode.
    mode = getattr(dialect, "_server_ansiquotes", None), getattr(dialect, "_backslash_escapes", None)
    return dialect.name, dialect.driver, getattr(dialect, "server_version_info", None), mode, *rest
