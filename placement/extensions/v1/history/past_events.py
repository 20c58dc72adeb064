"""The events since a past time, from the newest on, to undo what they say (docs/adr/0042)."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.database import Database
from placement.db.writes.notes import PROVIDER, RESOURCE_CLASS
from placement.extensions.v1.history import event_order
from placement.extensions.v1.history.event import OF_ORDER, OLDEST, POSITION
from placement.extensions.v1.history.tables import event_order as order
from placement.extensions.v1.history.tables import events

#: Positions of one statement.
_WINDOW = 10_000
#: Transactions of one statement.
_TRANSACTIONS = 100


class UnknownTime(Exception):
    """The history does not reach back so far."""

    def __init__(self, begins: datetime.datetime | None) -> None:
        """Take the time of the oldest event, naive, UTC; None if there is no event."""
        super().__init__(begins)
        self.begins = begins


class TooManyEvents(Exception):
    """There are more events since then than can be undone."""

    def __init__(self, reached: datetime.datetime) -> None:
        """Take the time since which there are about as many as can be, naive, UTC."""
        super().__init__(reached)
        self.reached = reached


class Undoable(NamedTuple):
    """What an event of a provider or a resource class says."""

    kind: str
    #: None for a resource class.
    uuid: str | None
    generations: tuple[int | None, int | None]
    changes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventsSince:
    """The events between a past time and one state of a database; rows of events never change."""

    #: The first position after that time, and the first one that is not known to the state.
    first: int
    end: int
    #: Transactions that had no position yet, in their order.
    unordered: tuple[tuple[int, int], ...]

    @classmethod
    def read(cls, db: Connection, moment: datetime.datetime, most: int) -> EventsSince:
        """Return the events since a moment, naive, UTC.

        Args:
            db: A connection that sees one committed state.
            most: The largest number of events.

        Raises:
            UnknownTime: The history does not reach back so far.
            TooManyEvents: There are more than ``most``.
        """
        oldest = db.execute(OLDEST).first()
        newest = db.execute(event_order.NEWEST_POSITION).first()
        if oldest is None or newest is None or oldest.at > moment:
            raise UnknownTime(None if oldest is None else oldest.at)
        end = newest.position + newest.events
        first = db.execute(_FIRST_AFTER, {"moment": moment}).scalar()
        if first is not None and end - first > most:
            # A tenth less, so that a client can ask for this time although there are more events by then.
            raise TooManyEvents(db.execute(_FIRST_FROM, {"position": end - most * 9 // 10}).scalar() or newest.at)
        unordered = tuple((row["writer_id"], row["seq"]) for row in event_order.unordered(db))
        return cls(end if first is None else first, end, unordered)

    def newest_first(self, database: Database) -> Iterator[Undoable]:
        """Yield the events of providers and resource classes, the newest first.

        Raises:
            UnknownTime: The oldest of them were removed meanwhile.
            Failure: As ``Database.read``.
        """
        for end in range(len(self.unordered), 0, -_TRANSACTIONS):
            some = self.unordered[max(0, end - _TRANSACTIONS) : end]
            yield from database.read(lambda db: _of_transactions(db, some))  # noqa: B023
        for end in range(self.end, self.first, -_WINDOW):
            window = {"first": max(self.first, end - _WINDOW), "end": end}
            rows = database.read(lambda db: db.execute(_OF_WINDOW, window).all())  # noqa: B023
            yield from map(_undoable, rows)
        # Events are removed from the oldest on: what is read last may have gone meanwhile.
        oldest = database.read(lambda db: db.execute(OLDEST).first())
        if oldest is None or oldest.position > self.first:
            raise UnknownTime(None if oldest is None else oldest.at)


def _of_transactions(db: Any, transactions: tuple[tuple[int, int], ...]) -> list[Undoable]:
    numbers = {transaction: number for number, transaction in enumerate(transactions)}
    those = sa.or_(*(sa.and_(events.c.writer_id == writer, events.c.seq == seq) for writer, seq in transactions))
    rows = db.execute(_OF_TRANSACTIONS.where(those)).all()
    rows.sort(key=lambda row: (numbers[row.writer_id, row.seq], row.number), reverse=True)
    return [*map(_undoable, rows)]


def _undoable(row: Any) -> Undoable:
    generations = row.before_generation, row.generation
    return Undoable(row.kind, row.uuid, generations, orjson.loads(row.changes))


_FIRST_AFTER = (
    sa.select(order.c.position)
    .where(order.c.at > sa.bindparam("moment"))
    .order_by(order.c.at, order.c.position)
    .limit(1)
)
_FIRST_FROM = (
    sa.select(order.c.at).where(order.c.position >= sa.bindparam("position")).order_by(order.c.position).limit(1)
)
_EVENTS = sa.select(
    *(events.c.kind, events.c.uuid, events.c.before_generation, events.c.generation, events.c.changes)
).where(events.c.kind.in_((PROVIDER, RESOURCE_CLASS)))
_OF_TRANSACTIONS = _EVENTS.add_columns(events.c.ordinal.label("number"), events.c.writer_id, events.c.seq)
_OF_WINDOW = (
    _EVENTS.add_columns(POSITION.label("number"))
    .join(order, OF_ORDER)
    .where(order.c.position >= sa.bindparam("first"), order.c.position < sa.bindparam("end"))
    .order_by(POSITION.desc())
)
