"""Pages of events, in the order of their positions (docs/adr/0042).

A reader resumes with the *mark* of the position it has reached: the number and a checksum of the transaction.  If the
number belongs to another transaction or to none, the database was restored from a backup, or events were pruned before
the reader saw them.

The cost of a page does not depend on the age of the history.  A page examines a bounded number of events, so a
selective filter can yield an empty page that is not the last one.
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

#: The kind of events about nodes, which the Bare Metal API records.
NODE = "node"
#: All kinds of events.
KINDS = (PROVIDER, CONSUMER, NODE, RESOURCE_CLASS, TRAIT)
#: Events examined for one page.
WINDOW = 20_000
#: The mark before the first event.
START_MARK = "0-00000000"
#: The pattern of marks; positions have at most 18 digits.
MARK = "[0-9]{1,18}-[0-9a-f]{8}"
#: Maximum clock skew between the servers of a database; a search by time begins this much earlier.
_TOLERANCE = datetime.timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Conditions that an event must meet; None or an empty tuple means no condition."""

    #: Uuids of providers, nodes or consumers, each in every spelling that the database may contain.
    uuids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    #: The owner of a consumer.
    project: str | None = None
    #: Whether to hide the values of a consumer from the time when another project owned it.
    only_owned: bool = False
    #: The earliest timestamp (naive, UTC).
    since: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """The changes of one object by one request."""

    number: int
    mark: str
    #: The timestamp by the clock of the database (naive, UTC).
    at: datetime.datetime
    kind: str
    #: The uuid of the object; None for resource classes and traits.
    uuid: str | None
    #: The new or last name, if the event creates, renames or deletes the object.
    name: str | None
    #: The generations before and after; both None if unchanged.
    generations: tuple[int | None, int | None]
    changes: dict[str, Any]
    #: The owner of a consumer.
    project: str | None
    #: The author of the change; None if unknown.
    request: dict[str, Any] | None

    def redact_for_owner(self) -> Event:
        """Return the event as its owner may see it: without old values if another project owned the consumer before."""
        project, _ = self.changes.get("project", (None, None))
        if project in (None, self.project):
            return self
        user, _ = self.changes.get("user", (None, None))
        request = self.request and {name: value for name, value in self.request.items() if value not in (project, user)}
        generations = None, self.generations[1]
        return dataclasses.replace(self, generations=generations, changes=_without_old(self.changes), request=request)


class EventPage(NamedTuple):
    """A page of events."""

    events: list[Event]
    #: The position that the page reached, and its mark.
    number: int
    mark: str
    #: Whether more events follow the page.
    more: bool
    #: Known names of the objects in the events, by uuid.
    names: Mapping[str, str] = {}


def newest_position(db: Reading) -> tuple[int, str]:
    """Return the number and the mark of the newest position."""
    row = db.execute(NEWEST_POSITION).first()
    return (0, START_MARK) if row is None else (_last_position(row), _mark(_last_position(row), row))


def page(
    db: Connection, event_filter: EventFilter, limit: int, after: str | None = None, *, newest_first: bool = False
) -> EventPage:
    """Return a page of events in the order of their positions.

    Args:
        db: A connection that sees one committed state.
        event_filter: The filter.
        limit: The maximum number of events.
        after: The mark to resume after; None to begin at the first event, or with ``newest_first`` at the last.
        newest_first: Whether to reverse the order.

    Raises:
        PositionLost: The mark does not belong to a position of this history.
    """
    newest, oldest = db.execute(NEWEST_POSITION).first(), db.execute(OLDEST).first()
    if newest is None or oldest is None:
        if after not in (None, START_MARK):
            raise PositionLost
        return EventPage([], 0, START_MARK, False)
    first, last = oldest.position, _last_position(newest)
    if after is not None:
        number = _number(db, after, first)
    elif newest_first:
        number = last + 1
    else:
        number = first - 1 if event_filter.since is None else _position_before(db, event_filter.since, last)
    lowest, highest = (first, number - 1) if newest_first else (number + 1, last)
    if lowest > highest:
        return EventPage([], number, after or _mark_of(db, number), False)
    conditions, lowest, highest = _conditions(db, event_filter, limit, lowest, highest, newest_first=newest_first)
    matches = [_event(row) for row in db.execute(_statement(conditions, limit, newest_first=newest_first))]
    if len(matches) == limit:
        reached, mark = matches[-1].number, matches[-1].mark
    else:
        reached = lowest if newest_first else highest
        mark = _mark(last, newest) if reached == last else _mark_of(db, reached)
    if event_filter.project is not None:
        # Some collations ignore trailing spaces.
        matches = [event for event in matches if event.project == event_filter.project]
    if event_filter.only_owned:
        matches = [event.redact_for_owner() for event in matches]
    return EventPage(matches, reached, mark, first < reached if newest_first else reached < last)


def _without_old(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the pairs with a new value, at any depth, each with null as its old value."""
    redacted: dict[str, Any] = {}
    for name, value in changes.items():
        if isinstance(value, dict):
            if nested := _without_old(value):
                redacted[name] = nested
        elif value[1] is not None:
            redacted[name] = [None, value[1]]
    return redacted


# --- marks -----------------------------------------------------------------------------------------------------------


def _last_position(row: Any) -> int:
    """Return the position of a transaction's last event."""
    number: int = row.position + row.events - 1
    return number


def _mark(number: int, row: Any) -> str:
    """Return the mark of a position in a transaction."""
    return f"{number}-{zlib.crc32(f'{row.writer_id}.{row.seq}'.encode()):08x}"


def _mark_of(db: Reading, number: int) -> str:
    row = db.execute(_TRANSACTION_AT, {"number": number}).first()
    return START_MARK if row is None else _mark(number, row)


def _number(db: Reading, mark: str, first: int) -> int:
    """Return the position of a mark, or raise PositionLost."""
    number = int(mark.partition("-")[0])
    if mark == START_MARK and first == 1:
        return number
    row = db.execute(_TRANSACTION_AT, {"number": number}).first()
    if row is None or number > _last_position(row) or mark != _mark(number, row):
        raise PositionLost
    return number


def _position_before(db: Reading, since: datetime.datetime, last: int) -> int:
    """Return the position before the first transaction at or after ``since``, or else ``last``."""
    earliest = max(since, datetime.datetime.min + _TOLERANCE) - _TOLERANCE
    position = db.execute(_SINCE, {"since": earliest}).scalar()
    return last if position is None else position - 1


# --- statements ------------------------------------------------------------------------------------------------------

_ALL = EventFilter()
#: The position of an event; its transaction is joined by ``OF_ORDER``.
POSITION = event_order.c.position + events.c.ordinal
#: The oldest transaction that has not been pruned.
OLDEST = sa.select(event_order).order_by(event_order.c.position).limit(1)
#: The transaction of a position; the newest transaction if the position is beyond the last event.
_TRANSACTION_AT = (
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
#: The condition that joins an event to its transaction in ``event_order``.
OF_ORDER = sa.and_(event_order.c.writer_id == events.c.writer_id, event_order.c.seq == events.c.seq)
_FIRST = events.alias("of_request")


def _conditions(
    db: Reading, event_filter: EventFilter, limit: int, lowest: int, highest: int, *, newest_first: bool
) -> tuple[list[sa.ColumnElement[bool]], int, int]:
    """Return the conditions of a page and the range of positions that it examines."""
    conditions: list[sa.ColumnElement[bool]] = []
    if event_filter.kinds:
        conditions.append(events.c.kind.in_(event_filter.kinds))
    if event_filter.since is not None:
        conditions.append(events.c.at >= event_filter.since)
    # Columns with an index.
    indexed = [(events.c.uuid, event_filter.uuids)] if event_filter.uuids else []
    if event_filter.project is not None:
        indexed.append((events.c.project, (event_filter.project,)))
    # Near the end of the history, scanning the remaining positions is cheaper than reading all events of an object.
    max_rows = min(WINDOW, highest - lowest)
    rare = next((column for column, values in indexed if _is_rare(db, column, values, max_rows)), None)
    # COALESCE keeps the database from using another index, in which these values may have many rows.
    conditions += (
        (column if column is rare else sa.func.coalesce(column, "")).in_(values) for column, values in indexed
    )
    if rare is None:
        window = limit if event_filter == _ALL else WINDOW
        if newest_first:
            lowest = max(lowest, highest + 1 - window)
        else:
            highest = min(highest, lowest - 1 + window)
        begin = sa.select(sa.func.max(event_order.c.position)).where(event_order.c.position <= lowest).scalar_subquery()
        conditions += event_order.c.position >= sa.func.coalesce(begin, 0), event_order.c.position <= highest
    conditions.append(POSITION.between(lowest, highest))
    return conditions, lowest, highest


def _is_rare(db: Reading, column: sa.Column[Any], values: tuple[str, ...], max_rows: int) -> bool:
    """Whether at most ``max_rows`` events have one of the values, so that a page can examine all of them."""
    sample = sa.select(events.c.seq).where(column.in_(values)).limit(max_rows + 1).subquery()
    return bool(db.execute(sa.select(sa.func.count()).select_from(sample)).scalar_one() <= max_rows)


def _statement(conditions: list[sa.ColumnElement[bool]], limit: int, *, newest_first: bool) -> sa.Select[Any]:
    """Return the statement that reads a page of events, each with its request.

    A subquery selects the events, from indexes alone if possible; the outer query reads their other columns.  Only the
    first row of a request contains the request, so that row is joined.  ORDER BY uses an expression, which keeps
    databases from scanning all transactions in order to find a few events.
    """
    number = POSITION.desc() if newest_first else POSITION
    matches = (
        sa.select(POSITION.label("number"), *events.primary_key.columns)
        .select_from(event_order)
        .join(events, OF_ORDER)
        .where(*conditions)
        .order_by(number)
        .limit(limit)
        .subquery("matches")
    )
    same_event = sa.and_(*(matches.c[column.name] == column for column in events.primary_key.columns))
    same_transaction = sa.and_(_FIRST.c.writer_id == events.c.writer_id, _FIRST.c.seq == events.c.seq)
    return (
        sa.select(matches.c.number, events, _FIRST.c.request.label("first_request"))
        .select_from(matches)
        .join(events, same_event)
        .outerjoin(_FIRST, sa.and_(same_transaction, _FIRST.c.ordinal == events.c.request_ordinal))
        .order_by(matches.c.number.desc() if newest_first else matches.c.number)
    )


def _event(row: Any) -> Event:
    changes = orjson.loads(row.changes)
    _, new_name = changes.get("name", (None, None))
    return Event(
        *(row.number, _mark(row.number, row), row.at, row.kind, row.uuid, new_name or row.name),
        (row.before_generation, row.generation),
        changes,
        row.project,
        None if row.first_request is None else orjson.loads(row.first_request),
    )
