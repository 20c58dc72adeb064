"""A check, and the subject that it is given.

A check is a function.  It reads a large table in batches.  Each batch is one statement, so it sees one committed state;
between two batches the check can be ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_policy.policy import RuleDefault

from placement.checks.finding import Finding
from placement.db.database import Database
from placement.index.live import LiveIndex

#: Rows of a table that one statement reads.  PostgreSQL may read all of the other table for each statement.
BATCH = 100_000


class NotMadeError(Exception):
    """Raised by a check that cannot be made here; the text says why."""


def _ignore(_number: int) -> None:
    pass


@dataclass(slots=True)
class Subject:
    """What is examined."""

    conf: cfg.ConfigOpts
    database: Database
    #: The policy rules that the service knows.
    rules: Sequence[RuleDefault] = ()
    #: The index of this process, if it is a worker.
    index: LiveIndex | None = None
    #: Called with the number of rows that a statement has examined; what it raises ends the check.
    on_rows: Callable[[int], object] = _ignore

    def rows(self, statement: Any, parameters: Any = None) -> Sequence[Any]:
        """Return the rows of a statement, which sees one committed state."""
        return self.database.read(lambda db: db.execute(statement, parameters or {}).all())

    def ranges(self, column: sa.Column[Any]) -> Iterator[dict[str, int]]:
        """Yield ``first`` and ``last``, ids of the rows of a batch, for each batch of a table.

        Args:
            column: The id of the table.
        """
        batch = sa.select(column).where(column > sa.bindparam("after")).order_by(column).limit(BATCH).subquery()
        bounds = sa.select(sa.func.min(batch.c.id), sa.func.max(batch.c.id), sa.func.count())
        after = -1
        while True:
            ((first, last, number),) = self.rows(bounds, {"after": after})
            if not number:
                return
            yield {"first": first, "last": last}
            self.on_rows(number)
            after = last

    def batched(self, statement: Any, column: sa.Column[Any]) -> Iterator[Any]:
        """Yield the rows of a statement that reads a table in batches; its WHERE clause has ``within(column)``."""
        for bounds in self.ranges(column):
            yield from self.rows(statement, bounds)


def within(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that the id of a row is in the batch, from ``first`` to ``last``."""
    return column.between(sa.bindparam("first"), sa.bindparam("last"))


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    run: Callable[[Subject], Iterable[Finding]]
    #: What is examined: "configuration", "database" or "data".
    about: str
    #: Whether it needs the tables of the newest revision.
    needs_tables: bool = True
