"""The database's clock: one clock for all workers, whose hosts have clocks of their own."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class Clock(FunctionElement[datetime.datetime]):
    """The time at which the statement began: UTC, naive, with microseconds (on SQLite: milliseconds).

    It is one value for the whole statement, so that a database can compare it with an index.
    """

    name = "clock"
    type = sa.DateTime()
    inherit_cache = True


#: The time of the statement, as an expression.
CLOCK = Clock()


@compiles(Clock, "mysql", "mariadb")
def _on_mysql(_element: Clock, _compiler: Any, **_options: Any) -> str:
    return "UTC_TIMESTAMP(6)"


@compiles(Clock, "postgresql")
def _on_postgresql(_element: Clock, _compiler: Any, **_options: Any) -> str:
    # Not that of the transaction, which may have waited for a lock since.
    return "timezone('UTC', statement_timestamp())"


@compiles(Clock, "sqlite")
def _on_sqlite(_element: Clock, _compiler: Any, **_options: Any) -> str:
    # With the six digits in which SQLAlchemy stores dates there: they are compared as texts.
    return "strftime('%Y-%m-%d %H:%M:%f000', 'now')"
