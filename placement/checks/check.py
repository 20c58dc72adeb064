"""The type of a check, and the subject that it examines.

A check is a function that reads large tables in batches.  Each batch is one statement, which sees one committed state.
A check can be stopped between two batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_policy.policy import RuleDefault

from placement.checks.finding import Finding
from placement.db.database import Database
from placement.index.live import LiveIndex
from placement.index.store import IndexStore

#: Rows per batch.  Large, because PostgreSQL may read the whole joined table for each statement.
BATCH = 100_000


class NotMadeError(Exception):
    """A check cannot run, or does not apply to this installation; the message is the reason."""


def _ignore(_number: int) -> None:
    pass


@dataclass(slots=True)
class Subject:
    """The installation that checks examine."""

    conf: cfg.ConfigOpts
    database: Database
    #: The policy rules of the service.
    rules: Sequence[RuleDefault] = ()
    #: The index of this process; None in commands.
    index: LiveIndex | None = None
    #: The index files of this machine, for commands.
    store: IndexStore = field(default_factory=lambda: IndexStore(None))
    #: A callback that receives the number of rows of each batch; an exception from it stops the check.
    on_rows: Callable[[int], object] = _ignore

    def rows(self, statement: Any, parameters: Any = None) -> Sequence[Any]:
        """Return all rows of a statement."""
        return self.database.read(lambda db: db.execute(statement, parameters or {}).all())

    def ranges(self, column: sa.Column[Any]) -> Iterator[dict[str, int]]:
        """Yield the batches of a table: ``first`` and ``last`` are the smallest and largest id of a batch.

        Args:
            column: The id column of the table.
        """
        batch = sa.select(column).where(column > sa.bindparam("after")).order_by(column).limit(BATCH).subquery()
        bounds = sa.select(sa.func.min(batch.c.id), sa.func.max(batch.c.id), sa.func.count())
        last = -1
        while True:
            ((first, last, count),) = self.rows(bounds, {"after": last})
            if not count:
                return
            yield {"first": first, "last": last}
            self.on_rows(count)

    def batched(self, statement: Any, column: sa.Column[Any]) -> Iterator[Any]:
        """Yield the rows of a statement, run once per batch; its WHERE clause must contain ``within(column)``."""
        for bounds in self.ranges(column):
            yield from self.rows(statement, bounds)


def within(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that an id is in the batch, from ``first`` to ``last``."""
    return column.between(sa.bindparam("first"), sa.bindparam("last"))


@dataclass(frozen=True, slots=True)
class Check:
    """A check and the part of the installation that it examines."""

    name: str
    run: Callable[[Subject], Iterable[Finding]]
    #: The examined part: "configuration", "database" or "data".
    about: str
    #: Whether the check requires the tables of the newest revision.
    needs_tables: bool = True
