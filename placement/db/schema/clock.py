"""The database's clock: one clock for all workers, because the clocks of their hosts may differ."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class Clock(FunctionElement[datetime.datetime]):
    """The time at which the statement began: UTC, naive, in microseconds (on SQLite: milliseconds).

    It is constant within a statement, so that the database can use an index for a comparison with it.
    """

    name = "clock"
    type = sa.DateTime()
    inherit_cache = True


#: The time at which the statement began.
CLOCK = Clock()


@compiles(Clock, "mysql", "mariadb")
def _on_mysql(_element: Clock, _compiler: Any, **_options: Any) -> str:
    return "UTC_TIMESTAMP(6)"


@compiles(Clock, "postgresql")
def _on_postgresql(_element: Clock, _compiler: Any, **_options: Any) -> str:
    # Not the time of the transaction, which may have waited for a lock since it began.
    return "timezone('UTC', statement_timestamp())"


@compiles(Clock, "sqlite")
def _on_sqlite(_element: Clock, _compiler: Any, **_options: Any) -> str:
    # With six decimals, because SQLAlchemy stores dates that way there, and they are compared as texts.
    return "strftime('%Y-%m-%d %H:%M:%f000', 'now')"
