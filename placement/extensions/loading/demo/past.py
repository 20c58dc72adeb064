"""Moves the dates of what is written now into the day that ends now.

What is written at each moment of that day is written now, in the same order.  The dates of these rows are then those of
the present, and all others are earlier.  So the rows of a moment are those with a later date than the day has.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.clock import CLOCK
from placement.db.schema.tables import OURS, metadata

#: The time between two samples of the usage.
STEP = datetime.timedelta(minutes=10)
_DAY = datetime.timedelta(days=1)
#: Hours before the day, when the first providers are made.
_BEFORE = -1.2
#: What pages show with its second; the dates of the other tables are moved once for each sample.
_SHOWN = ("events", "consumers")
#: The tables of the samples.
_SAMPLES = ("usage_samples", "usage_shares")


class PastDay:
    """Moves what is written from one moment of the day to the next, and has a sample taken at each ten minutes."""

    def __init__(self, database: Database) -> None:
        """Begin with an empty database; the day ends at the last whole ten minutes."""
        self._database = database
        now: datetime.datetime = database.read(lambda db: db.execute(sa.select(CLOCK)).scalar_one())
        self._end = now - (now - datetime.datetime.min) % STEP
        self._moment = self._at(_BEFORE)
        self._next_sample = self._at(0)
        self._all = {table.name: _update(table) for table in metadata.sorted_tables if table not in OURS}
        self._shown = [update for name, update in self._all.items() if name in _SHOWN]
        samples = [table for table in metadata.sorted_tables if table.name in _SAMPLES]
        self._stale = [sa.delete(table).where(table.c.at >= sa.bindparam("end")) for table in samples]

    def advance(self, hour: float) -> None:
        """Give what was written since the last call the moment of that call, and go on to an hour of the day.

        A sample is taken at each ten minutes between them, also at the hour itself.
        """
        self._move(self._shown, self._moment)
        while self._next_sample <= self._at(hour):
            if self._database.recorder is not None:
                # A write of the application may have taken the sample of the present, which would be taken only once.
                self._execute(self._stale, {"end": self._end})
                self._database.recorder.maintain()
            self._move(self._all.values(), self._next_sample)
            self._next_sample += STEP
        self._moment = self._at(hour)

    def _at(self, hour: float) -> datetime.datetime:
        return self._end - _DAY + datetime.timedelta(hours=hour)

    def _move(self, updates: Iterable[sa.Update], moment: datetime.datetime) -> None:
        self._execute(updates, {"end": self._end, "moment": moment})

    def _execute(self, statements: Iterable[sa.Update | sa.Delete], values: Mapping[str, datetime.datetime]) -> None:
        self._database.write(lambda db: [db.execute(statement, values) for statement in statements])


def _update(table: sa.Table) -> sa.Update:
    """Return a statement that gives the dates from ``end`` on in a table the value ``moment``."""
    end, moment = (sa.bindparam(name, type_=sa.DateTime()) for name in ("end", "moment"))
    dates = [column for column in table.columns if isinstance(column.type, sa.DateTime)]
    # Also those that stay, or updated_at would be the present.
    values = {column.name: sa.case((column >= end, moment), else_=column) for column in dates}
    return sa.update(table).where(sa.or_(*(column >= end for column in dates))).values(values)
