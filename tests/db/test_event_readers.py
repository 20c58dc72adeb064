"""Readers in several processes have every event once and in order, whatever writers and sequencers do meanwhile."""

from __future__ import annotations

import json
import sys

import pytest
import sqlalchemy as sa

from placement.db.database import opened
from placement.db.history import HistorySettings
from placement.db.tables import consumers, event_order, events, resource_providers
from tests import preloaded
from tests.db import event_crowd
from tests.db.in_process import placement

pytestmark = pytest.mark.every_database


def test_readers_have_each_event_once_in_order(database):
    """Ten readers with small pages, writers in other processes, and one of these is killed."""
    done = preloaded.service().run(
        [sys.executable, "-m", "tests.db.event_crowd", database.engine.url.render_as_string(hide_password=False)]
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    first, *others = found["read"]
    assert [one[0] for one in first] == list(range(1, found["end"] + 1))
    assert all(other == first for other in others)
    assert database.read(lambda db: db.execute(sa.select(sa.func.count()).select_from(events)).scalar()) == len(first)
    assert final_states(database) == states_of(first)
    written = {uuid for _, _, uuid, *_ in first}
    for writer in range(event_crowd.WRITERS):
        assert written & {*event_crowd.consumers_of(writer)}
        assert event_crowd.provider_of(writer) in written
    of_victim = {*event_crowd.consumers_of(event_crowd.VICTIM), event_crowd.provider_of(event_crowd.VICTIM)}
    assert written & of_victim


def states_of(read):
    """Return the generation of each provider and consumer that is there in the end; each step begins at the last."""
    states, steps = {}, {}
    for _, kind, uuid, before, after in read:
        if before is None and after is None:
            continue
        key = (kind, uuid)
        # Claims of several requests, placed by one transaction, have an event each for the same step.
        if steps.get(key) != (before, after):
            assert states.get(key) == before
        states[key], steps[key] = after, (before, after)
    return {key: state for key, state in states.items() if state is not None}


def final_states(database):
    found = {}
    for kind, table in (("provider", resource_providers), ("consumer", consumers)):
        rows = database.read(lambda db, table=table: db.execute(sa.select(table.c.uuid, table.c.generation)).all())
        found |= {(kind, row.uuid): row.generation for row in rows}
    return found


def test_pruning_while_reading_is_gone_and_never_a_gap(database):
    """A reader that stands still while events are removed is told so; one that goes on meets no gap."""
    service = placement(database)
    for number in range(6):
        uuid = f"d0000000-0000-4000-8000-00000000000{number}"
        assert service("POST", "/resource_providers", 39, {"uuid": uuid, "name": uuid}).status == 200
    slow = service("GET", "/v1/events?limit=2").body["position"]
    quick = service("GET", "/v1/events?limit=5").body["position"]
    with database.engine.begin() as connection:
        connection.execute(
            sa.update(event_order).where(event_order.c.position <= 4).values(at=sa.text("'2020-01-01 00:00:00.000000'"))
        )
    assert database.history.prune() == 4
    gone = service("GET", f"/v1/events?after={slow}")
    assert (gone.status, gone.error["code"]) == (410, "placement.v1.position_lost")
    assert [one["position"][0] for one in service("GET", f"/v1/events?after={quick}").body["events"]] == ["6"]


@pytest.mark.parametrize("path", ["/v1/events", "/v1/history/{uuid}"])
def test_a_process_that_records_nothing_shows_what_others_have_recorded(database, path):
    uuid = "d0000000-0000-4000-8000-000000000001"
    assert placement(database)("POST", "/resource_providers", 39, {"uuid": uuid, "name": uuid}).status == 200
    with opened(database.url, history=HistorySettings(enabled=False)) as silent:
        service = placement(silent)
        assert service("POST", "/resource_providers", 39, {"uuid": uuid[:-1] + "2", "name": "x"}).status == 200
        assert len(service("GET", path.format(uuid=uuid)).body["events"]) == 1
