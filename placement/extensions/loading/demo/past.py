"""Backdating of new rows into the day that ends now.

The rows of the day are written now, in the order of their timestamps.  Only new rows have dates after the end of the
day, so an update of all dates after the end moves exactly the new rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.clock import CLOCK
from placement.db.schema.tables import OURS, metadata

#: Interval of the samples of the usage history.
STEP = datetime.timedelta(minutes=10)
_DAY = datetime.timedelta(days=1)
#: The hour at which the first providers are created, before the day begins.
_FIRST_HOUR = -1.2
#: Tables whose dates are shown to the second; the dates of other tables are moved once per sample.
_SHOWN = ("events", "consumers")
#: The tables of the usage history.
_SAMPLES = ("usage_samples", "usage_shares")


class PastDay:
    """A clock for the past day, which dates new rows and takes a usage sample every ten minutes."""

    def __init__(self, database: Database) -> None:
        """Start before the day, with an empty database; the day ends at the last multiple of ten minutes."""
        self._database = database
        now: datetime.datetime = database.read(lambda db: db.execute(sa.select(CLOCK)).scalar_one())
        self._end = now - (now - datetime.datetime.min) % STEP
        self._time = self._time_of(_FIRST_HOUR)
        self._next_sample = self._time_of(0)
        self._updates = {table.name: _update(table) for table in metadata.sorted_tables if table not in OURS}
        self._shown_updates = [update for name, update in self._updates.items() if name in _SHOWN]
        samples = [table for table in metadata.sorted_tables if table.name in _SAMPLES]
        self._sample_deletions = [sa.delete(table).where(table.c.at >= sa.bindparam("end")) for table in samples]

    def advance(self, hour: float) -> None:
        """Date the rows written since the last call with the time of that call, and advance to an hour of the day.

        Take the samples that are due until then, including one at that hour.
        """
        self._move(self._shown_updates, self._time)
        while self._next_sample <= self._time_of(hour):
            if self._database.recorder is not None:
                # A write may have triggered the present sample, and a second one for that time would not be taken.
                self._execute(self._sample_deletions, {"end": self._end})
                self._database.recorder.maintain()
            self._move(self._updates.values(), self._next_sample)
            self._next_sample += STEP
        self._time = self._time_of(hour)

    def _time_of(self, hour: float) -> datetime.datetime:
        return self._end - _DAY + datetime.timedelta(hours=hour)

    def _move(self, updates: Iterable[sa.Update], time: datetime.datetime) -> None:
        self._execute(updates, {"end": self._end, "time": time})

    def _execute(self, statements: Iterable[sa.Update | sa.Delete], values: Mapping[str, datetime.datetime]) -> None:
        self._database.write(lambda db: [db.execute(statement, values) for statement in statements])


def _update(table: sa.Table) -> sa.Update:
    """Return a statement that sets the dates of a table from ``end`` on to ``time``."""
    end, time = (sa.bindparam(name, type_=sa.DateTime()) for name in ("end", "time"))
    dates = [column for column in table.columns if isinstance(column.type, sa.DateTime)]
    # Older dates are set to themselves: otherwise onupdate would set updated_at to the present.
    values = {column.name: sa.case((column >= end, time), else_=column) for column in dates}
    return sa.update(table).where(sa.or_(*(column >= end for column in dates))).values(values)
