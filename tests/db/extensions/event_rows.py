"""Rows of events for tests, written without changing objects and read without the API."""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.tables import consumers, resource_providers
from placement.db.writes import notes as events
from placement.db.writes.author import Author
from placement.extensions.v1.history.tables import event_order
from placement.extensions.v1.history.tables import events as table

AUTHOR = Author(request_id="req-1", user="u", project="p", client="127.0.0.1", api="placement", route="PUT /x")


def write(database, *steps, kind=events.PROVIDER, by=AUTHOR, project=None):
    """Write one transaction with an event for each step: (uuid, generation before, generation after)."""

    def work(db):
        for key, before, after in steps:
            changes = {}
            if kind == events.PROVIDER and (before is None or after is None):
                changes = {("name",): (None if before is None else f"n-{key}", None if after is None else f"n-{key}")}
            db.note(kind, key, changes, advance=events.Advance(None, before, after), by=by, project=project)

    database.write(work)


def chain(database, key, number, start=0):
    """Write ``number`` transactions; each advances the generation of a provider by one."""
    for generation in range(start, start + number):
        write(database, (key, generation, generation + 1))


def set_age(database, last, days):
    """Set the age in days of all transactions up to the position ``last``."""
    at = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(days=days)
    with database.engine.begin() as connection:
        connection.execute(sa.update(event_order).where(event_order.c.position <= last).values(at=at))


def key(number):
    return str(uuid.UUID(int=number))


def count_without_position(database):
    """Return the number of transactions with events but without a position."""
    transactions = sa.select(table.c.writer_id, table.c.seq).distinct().subquery()
    query = (
        sa.select(sa.func.count())
        .select_from(transactions)
        .outerjoin(
            event_order,
            sa.and_(event_order.c.writer_id == transactions.c.writer_id, event_order.c.seq == transactions.c.seq),
        )
        .where(event_order.c.position.is_(None))
    )
    return database.read(lambda db: db.execute(query).scalar_one())


def in_order(database):
    """Return (position, uuid, generation before, generation after) of all events with a position, in order."""
    joined = sa.and_(event_order.c.writer_id == table.c.writer_id, event_order.c.seq == table.c.seq)
    query = (
        sa.select(
            *((event_order.c.position + table.c.ordinal).label("position"), table.c.uuid),
            *(table.c.before_generation, table.c.generation),
        )
        .join(event_order, joined)
        .order_by(event_order.c.position, table.c.ordinal)
    )
    return [tuple(row) for row in database.read(lambda db: db.execute(query).all())]


def without_row(database):
    """Return objects whose row ids are missing or wrong, and events of lifetimes without an event of their creation."""
    has_generation = sa.or_(table.c.before_generation.is_not(None), table.c.generation.is_not(None))
    query = sa.select(table.c.kind, table.c.uuid, table.c.before_generation, table.c.generation, table.c.row_id)
    rows = database.read(lambda db: db.execute(query.where(has_generation)).all())
    present = {}
    for kind, objects in ((events.PROVIDER, resource_providers), (events.CONSUMER, consumers)):
        ids = database.read(lambda db, objects=objects: db.execute(sa.select(objects.c.uuid, objects.c.id)).all())
        present |= {(kind, row.uuid): row.id for row in ids}
    lifetimes = {}
    for row in rows:
        lifetimes.setdefault((row.kind, row.uuid), set()).add(row.row_id)
    # An existing object has the row of its last lifetime; a deleted object must have had only one.
    wrong = [key for key, ids in lifetimes.items() if None in ids or present.get(key, min(ids)) != max(ids)]
    created = {(row.kind, row.uuid, row.row_id) for row in rows if row.before_generation is None}
    return wrong + [row for row in rows if (row.kind, row.uuid, row.row_id) not in created]


def check(rows):
    """Check that positions have no gap, and that each event of an object begins with its last generation."""
    positions = [row[0] for row in rows]
    assert positions == list(range(positions[0], positions[0] + len(positions))) if positions else True
    states = {}
    for _, object_uuid, before, after in rows:
        if before is None and after is None:
            continue  # the generation does not change
        assert states.get(object_uuid, before) == before
        states[object_uuid] = after


# --- events --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """The changes of one object by one request."""

    #: The position of its transaction.
    position: int
    kind: str
    uuid: str | None
    #: The new or last name, if the event creates, renames or deletes the object.
    name: str | None
    generations: tuple[int | None, int | None]
    changes: dict[str, Any]
    request: dict[str, Any] | None


#: Up to 500 transactions after a position.
_NEXT = (
    sa.select(event_order)
    .where(event_order.c.position > sa.bindparam("after"))
    .order_by(event_order.c.position)
    .limit(500)
    .subquery("following")
)
_PAGE = (
    sa.select(_NEXT.c.position, table)
    .join(table, sa.and_(_NEXT.c.writer_id == table.c.writer_id, _NEXT.c.seq == table.c.seq))
    .order_by(_NEXT.c.position, table.c.ordinal)
)


def following(database: Database, after: int = 0) -> Iterator[Event]:
    """Yield the events of all transactions after a position, in order."""
    database.recorder.order()
    while rows := database.snapshot(lambda db: db.execute(_PAGE, {"after": after}).all()):  # noqa: B023
        # The first event of a request contains the request; the others refer to that event.
        requests = {(row.position, row.ordinal): row.request for row in rows}
        for row in rows:
            changes, request_text = json.loads(row.changes), requests.get((row.position, row.request_ordinal))
            name = changes.get("name", (None, None))[1] or row.name
            generations = (row.before_generation, row.generation)
            request = request_text and json.loads(request_text)
            yield Event(row.position, row.kind, row.uuid, name, generations, changes, request)
        after = rows[-1].position


def newest(database: Database) -> int:
    """Return the position of the newest transaction; 0 if there is none."""
    database.recorder.order()
    return database.read(lambda db: db.execute(sa.select(sa.func.max(event_order.c.position))).scalar()) or 0
