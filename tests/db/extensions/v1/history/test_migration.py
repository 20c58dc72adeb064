"""Migration of history tables that an earlier release created, with their rows."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from placement.db.schema import schema
from placement.extensions.v1.history.tables import events
from tests.db.extensions import event_rows as rows
from tests.db.extensions.event_rows import chain, key, write
from tests.db.in_process import placement
from tests.made import ADDITIONS

pytestmark = pytest.mark.every_database


def test_events_of_a_release_without_row_ids_are_kept_and_come_first(database):
    """Some of them have a position; the others are ordered together with events of this release."""
    write(database, (key(1), None, 0))
    chain(database, key(1), 2)
    database.recorder.order()
    write(database, (key(1), 2, None))
    before = database.read(lambda db: db.execute(_ALL).all())
    with database.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE events DROP COLUMN row_id"))
    database.engine.dispose()
    assert schema.missing_columns(database.reading_engine, ADDITIONS) == ["events.row_id"]
    schema.sync(database.engine, additions=ADDITIONS)
    assert schema.finding(database.reading_engine, ADDITIONS) is None
    assert database.read(lambda db: db.execute(_ALL).all()) == before
    service = placement(database)
    assert service("POST", "/resource_providers", 39, {"uuid": key(1), "name": "again"}).status == 200
    assert rows.count_without_position(database) == 2
    events_of_provider = service("GET", f"/v1/history/{key(1)}").body["events"]
    assert [event["generation"] for event in events_of_provider] == [[None, 0], [0, 1], [1, 2], [2, None], [None, 0]]
    ids = sa.select(events.c.row_id).order_by(events.c.at)
    assert [id_ is None for id_ in database.read(lambda db: db.execute(ids).scalars().all())] == [True] * 4 + [False]


_ALL = sa.select(*(column for column in events.c if column.name != "row_id")).order_by(events.c.writer_id, events.c.seq)
