"""Events of the history, in the order of their positions, page by page (docs/adr/0042).

With its next request a reader sends the *mark* of the position that it has reached: the number, and a checksum of its
transaction.  If the number now belongs to another transaction, or to none, the database was restored from a backup,
or events were removed that the reader has not seen.

The cost of a page does not depend on the age of the history.  A page looks at a bounded number of events, so where few
of them are wanted it may be empty and still not be the last.
"""

from __future__ import annotations

import dataclasses
import datetime
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.writes.notes import CONSUMER, PROVIDER, RESOURCE_CLASS, TRAIT
from placement.db.writes.transaction import Reading
from placement.extensions.v1.failures import PositionLost
from placement.extensions.v1.history.order import NEWEST_POSITION
from placement.extensions.v1.history.tables import event_order, events

#: The kind of events of nodes, which the Bare Metal API notes.
NODE = "node"
#: All kinds.
KINDS = (PROVIDER, CONSUMER, NODE, RESOURCE_CLASS, TRAIT)
#: How many events one page looks at.
WINDOW = 20_000
#: The mark of a history without events, before its first one.
ORIGIN = "0-00000000"
#: Marks of positions; no position has more digits.
MARK = "[0-9]{1,18}-[0-9a-f]{8}"
#: How much the clocks of a database's servers may differ: the search for a moment begins this much earlier.
_TOLERANCE = datetime.timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """The events that meet every condition; None, or an empty tuple, is no condition."""

    #: The uuid of the provider, node or consumer, in each spelling that it may have.
    uuids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    #: The owner of a consumer.
    project: str | None = None
    #: Whether to leave out what consumers were while another project owned them.
    only_owned: bool = False
    #: Naive, UTC.
    since: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """What one request has changed about one object."""

    number: int
    mark: str
    #: By the clock of the database: naive, UTC.
    at: datetime.datetime
    kind: str
    #: None for resource classes and traits.
    uuid: str | None
    #: The new or last name, if the event creates, renames or deletes the object.
    name: str | None
    #: Before and after; both None if the generation did not change.
    generations: tuple[int | None, int | None]
    changes: dict[str, Any]
    #: The owner of a consumer.
    project: str | None
    #: In whose name; None if that is unknown.
    request: dict[str, Any] | None

    def to_owner(self) -> Event:
        """Return what its project may see of it: no earlier values if another project owned the consumer before."""
        project, _ = self.changes.get("project", (None, None))
        if project in (None, self.project):
            return self
        user, _ = self.changes.get("user", (None, None))
        request = self.request and {name: value for name, value in self.request.items() if value not in (project, user)}
        generations = None, self.generations[1]
        return dataclasses.replace(self, generations=generations, changes=_without_old(self.changes), request=request)


class EventPage(NamedTuple):
    """Some events, and where the next page begins."""

    events: list[Event]
    #: The position that was reached.
    number: int
    mark: str
    #: Whether there are events beyond it.
    more: bool
    #: The known names of the objects that the events mention, by uuid.
    names: Mapping[str, str] = {}


def newest(db: Reading) -> tuple[int, str]:
    """Return the number and the mark of the newest position."""
    row = db.execute(NEWEST_POSITION).first()
    return (0, ORIGIN) if row is None else (_last(row), _mark(_last(row), row))


def page(
    db: Connection, wanted: EventFilter, limit: int, after: str | None = None, *, newest_first: bool = False
) -> EventPage:
    """Return events that have a position, in their order.

    Args:
        db: A connection that sees one committed state.
        wanted: Which of them.
        limit: How many at most.
        after: The mark of the position that was reached; None to begin at the first, or with ``newest_first`` the last.
        newest_first: Whether they come in reverse order.

    Raises:
        PositionLost: The mark belongs to no position, or to one that is lost.
    """
    newest, oldest = db.execute(NEWEST_POSITION).first(), db.execute(OLDEST).first()
    if newest is None or oldest is None:
        if after not in (None, ORIGIN):
            raise PositionLost
        return EventPage([], 0, ORIGIN, False)
    first, last = oldest.position, _last(newest)
    if after is not None:
        number = _number(db, after, first)
    elif newest_first:
        number = last + 1
    else:
        number = first - 1 if wanted.since is None else _before(db, wanted.since, last)
    lowest, highest = (first, number - 1) if newest_first else (number + 1, last)
    if lowest > highest:
        return EventPage([], number, after or _mark_of(db, number), False)
    conditions, lowest, highest = _conditions(db, wanted, limit, lowest, highest, newest_first=newest_first)
    found = [_event(row) for row in db.execute(_statement(conditions, limit, newest_first=newest_first))]
    if len(found) == limit:
        reached, mark = found[-1].number, found[-1].mark
    else:
        reached = lowest if newest_first else highest
        mark = _mark(last, newest) if reached == last else _mark_of(db, reached)
    if wanted.project is not None:
        # Some collations also find it with trailing spaces.
        found = [one for one in found if one.project == wanted.project]
    if wanted.only_owned:
        found = [one.to_owner() for one in found]
    return EventPage(found, reached, mark, first < reached if newest_first else reached < last)


def _without_old(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the pairs that have a new value, in objects of any depth, with null for each old value."""
    found: dict[str, Any] = {}
    for name, value in changes.items():
        if isinstance(value, dict):
            if rest := _without_old(value):
                found[name] = rest
        elif value[1] is not None:
            found[name] = [None, value[1]]
    return found


# --- marks -----------------------------------------------------------------------------------------------------------


def _last(row: Any) -> int:
    """Return the position of the last event of a transaction."""
    number: int = row.position + row.events - 1
    return number


def _mark(number: int, row: Any) -> str:
    """Return the mark of a position in a transaction."""
    return f"{number}-{zlib.crc32(f'{row.writer_id}.{row.seq}'.encode()):08x}"


def _mark_of(db: Reading, number: int) -> str:
    row = db.execute(_HOLDER, {"number": number}).first()
    return ORIGIN if row is None else _mark(number, row)


def _number(db: Reading, mark: str, first: int) -> int:
    """Return the number of a mark; raises PositionLost."""
    number = int(mark.partition("-")[0])
    if mark == ORIGIN and first == 1:
        return number
    row = db.execute(_HOLDER, {"number": number}).first()
    if row is None or number > _last(row) or mark != _mark(number, row):
        raise PositionLost
    return number


def _before(db: Reading, since: datetime.datetime, last: int) -> int:
    """Return the number before the first transaction since a moment; the last number if there is none."""
    earliest = max(since, datetime.datetime.min + _TOLERANCE) - _TOLERANCE
    position = db.execute(_SINCE, {"since": earliest}).scalar()
    return last if position is None else position - 1


# --- statements ------------------------------------------------------------------------------------------------------

_ALL = EventFilter()
#: The position of an event, whose transaction OF_ORDER joins.
POSITION = event_order.c.position + events.c.ordinal
#: The oldest transaction that has not been removed.
OLDEST = sa.select(event_order).order_by(event_order.c.position).limit(1)
#: The transaction to which a position belongs; for one beyond the last, the newest transaction.
_HOLDER = (
    sa.select(event_order)
    .where(event_order.c.position <= sa.bindparam("number"))
    .order_by(event_order.c.position.desc())
    .limit(1)
)
_SINCE = (
    sa.select(event_order.c.position)
    .where(event_order.c.at >= sa.bindparam("since"))
    .order_by(event_order.c.at, event_order.c.position)
    .limit(1)
)
OF_ORDER = sa.and_(event_order.c.writer_id == events.c.writer_id, event_order.c.seq == events.c.seq)
_FIRST = events.alias("of_request")


def _conditions(
    db: Reading, wanted: EventFilter, limit: int, lowest: int, highest: int, *, newest_first: bool
) -> tuple[list[sa.ColumnElement[bool]], int, int]:
    """Return the conditions of a page, and the first and last position that it looks at."""
    conditions: list[sa.ColumnElement[bool]] = []
    if wanted.kinds:
        conditions.append(events.c.kind.in_(wanted.kinds))
    if wanted.since is not None:
        conditions.append(events.c.at >= wanted.since)
    # The columns that have an index.
    indexed = [(events.c.uuid, wanted.uuids)] if wanted.uuids else []
    if wanted.project is not None:
        indexed.append((events.c.project, (wanted.project,)))
    # For a reader that has nearly reached the end, not even all events of one object are looked at.
    most = min(WINDOW, highest - lowest)
    rare = next((column for column, values in indexed if _is_rare(db, column, values, most)), None)
    # COALESCE keeps the database from another index, in which these values may have very many rows.
    conditions += (
        (column if column is rare else sa.func.coalesce(column, "")).in_(values) for column, values in indexed
    )
    if rare is None:
        window = limit if wanted == _ALL else WINDOW
        if newest_first:
            lowest = max(lowest, highest + 1 - window)
        else:
            highest = min(highest, lowest - 1 + window)
        begin = sa.select(sa.func.max(event_order.c.position)).where(event_order.c.position <= lowest).scalar_subquery()
        conditions += event_order.c.position >= sa.func.coalesce(begin, 0), event_order.c.position <= highest
    conditions.append(POSITION.between(lowest, highest))
    return conditions, lowest, highest


def _is_rare(db: Reading, column: sa.Column[Any], values: tuple[str, ...], most: int) -> bool:
    """Return whether the history has at most ``most`` events with one of the values, so that all can be looked at."""
    some = sa.select(events.c.seq).where(column.in_(values)).limit(most + 1).subquery()
    return bool(db.execute(sa.select(sa.func.count()).select_from(some)).scalar_one() <= most)


def _statement(conditions: list[sa.ColumnElement[bool]], limit: int, *, newest_first: bool) -> sa.Select[Any]:
    """Return the statement of a page: its events, each with its request, from the first row of that request.

    It finds the events of the page first, in indexes alone if possible, and only then reads all their columns.  It
    orders by an expression, so that no database reads all transactions in order to find a few events.
    """
    number = POSITION.desc() if newest_first else POSITION
    found = (
        sa.select(POSITION.label("number"), *events.primary_key.columns)
        .select_from(event_order)
        .join(events, OF_ORDER)
        .where(*conditions)
        .order_by(number)
        .limit(limit)
        .subquery("found")
    )
    same_event = sa.and_(*(found.c[column.name] == column for column in events.primary_key.columns))
    same_transaction = sa.and_(_FIRST.c.writer_id == events.c.writer_id, _FIRST.c.seq == events.c.seq)
    return (
        sa.select(found.c.number, events, _FIRST.c.request.label("asked"))
        .select_from(found)
        .join(events, same_event)
        .outerjoin(_FIRST, sa.and_(same_transaction, _FIRST.c.ordinal == events.c.request_ordinal))
        .order_by(found.c.number.desc() if newest_first else found.c.number)
    )


def _event(row: Any) -> Event:
    changes = orjson.loads(row.changes)
    _, new_name = changes.get("name", (None, None))
    return Event(
        *(row.number, _mark(row.number, row), row.at, row.kind, row.uuid, new_name or row.name),
        (row.before_generation, row.generation),
        changes,
        row.project,
        None if row.asked is None else orjson.loads(row.asked),
    )
