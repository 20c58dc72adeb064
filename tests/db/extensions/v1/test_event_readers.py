"""Readers in several processes receive every event once and in order, while other processes write and order events."""

from __future__ import annotations

import random
import time

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import consumers, resource_providers
from placement.extensions.v1.history import event
from placement.extensions.v1.history.recorder import HistorySettings
from placement.extensions.v1.history.tables import event_order, events
from tests.caller import NEW_CONSUMER
from tests.db import forks
from tests.db.forks import Fork
from tests.db.in_process import placement
from tests.made import opened

pytestmark = pytest.mark.every_database


def test_readers_receive_each_event_once_in_order(database):
    """Ten processes read small pages, and others write; one of the writers is killed."""
    end, (first, *other_readers) = forks.from_new_process(
        read_and_write, database.url.render_as_string(hide_password=False)
    )
    assert [read_event[0] for read_event in first] == list(range(1, end + 1))
    assert all(events_read == first for events_read in other_readers)
    assert database.read(lambda db: db.execute(sa.select(sa.func.count()).select_from(events)).scalar()) == len(first)
    assert final_states(database) == states_of(first)
    written = {uuid for _, _, uuid, *_ in first}
    for writer in range(WRITERS):
        assert written & {*consumers_of(writer)}
        assert provider_of(writer) in written
    assert written & {*consumers_of(VICTIM), provider_of(VICTIM)}


READERS, WRITERS, ROUNDS = 10, 3, 6
#: The number of the writer that is killed; the other writers have lower numbers.
VICTIM = WRITERS
HOSTS = [f"a0000000-0000-4000-8000-00000000000{number}" for number in range(3)]


def consumers_of(writer):
    return [f"c{writer}000000-0000-4000-8000-00000000000{number}" for number in range(3)]


def provider_of(writer):
    """Return the provider that a writer creates and deletes."""
    return f"b{writer}000000-0000-4000-8000-000000000001"


def read_and_write(url):
    """Return the last position, and the events of each reader: position, kind, uuid, generation before and after.

    Readers begin before the first write, request few events at a time, and end with the last event.
    """
    end = forks.shared_integer()
    with opened(url) as database:
        service = placement(database)
        for host in HOSTS:
            service("POST", "/resource_providers", 39, {"uuid": host, "name": host})
            inventories = {"inventories": {"VCPU": {"total": 1000}}, "resource_provider_generation": 0}
            assert service("PUT", f"/resource_providers/{host}/inventories", 39, inventories).status == 200
    readers = [Fork(read, url, number, end) for number in range(READERS)]
    victim = Fork(write, url, VICTIM, 10**6)
    writers = [Fork(write, url, number, ROUNDS) for number in range(WRITERS)]
    of_victim = events.c.uuid.in_([*consumers_of(VICTIM), provider_of(VICTIM)])
    with opened(url) as database:
        while not database.read(lambda db: db.execute(sa.select(events.c.uuid).where(of_victim).limit(1)).first()):
            victim.check()
            time.sleep(0.02)
    victim.kill()
    for writer in writers:
        writer.result()
    with opened(url) as database:
        database.recorder.order()
        end.value, _ = database.read(event.newest_position)
    return end.value, [reader.result() for reader in readers]


def write(url, number, rounds):
    """Claim, move, release and claim again, and create and delete a provider; some of the requests are refused."""
    chance = random.Random(number)
    provider = provider_of(number)
    with opened(url) as database:
        service = placement(database)
        for _ in range(rounds):
            for consumer in consumers_of(number):
                host, other = chance.sample(HOSTS, 2)
                path = f"/allocations/{consumer}"
                amount = {"resources": {"VCPU": chance.randint(1, 5)}}
                service("PUT", path, 39, {**NEW_CONSUMER, "allocations": {host: amount}})
                moved = {**NEW_CONSUMER, "allocations": {other: amount}, "consumer_generation": 1}
                service("PUT", path, 39, moved)
                if chance.random() < 0.7:
                    service("DELETE", path)
            service("POST", "/resource_providers", 39, {"uuid": provider, "name": provider})
            service("DELETE", f"/resource_providers/{provider}")


def read(url, number, end):
    """Follow the events from the beginning; reopen the database now and then, as after a restart."""
    read_events = []
    reached, mark = 0, ""
    while not end.value or reached < end.value:
        with opened(url) as database:
            service = placement(database)
            for _ in range(40):
                condition = f"&after={mark}" if mark else ""
                answer = service("GET", f"/v1/events?limit={2 + number % 4 * 5}{condition}")
                assert answer.status == 200, answer
                mark = answer.body["position"]
                reached = int(mark.partition("-")[0])
                for event in answer.body["events"]:
                    read_events.append(
                        (int(event["position"].partition("-")[0]), event["kind"], event["uuid"], *event["generation"])
                    )
                if end.value and reached >= end.value:
                    break
                if not answer.body["events"]:
                    time.sleep(0.02)
    return read_events


def states_of(read_events):
    """Return the final generation of each existing provider and consumer; check that each step follows the last."""
    states, steps = {}, {}
    for _, kind, uuid, before, after in read_events:
        if before is None and after is None:
            continue
        key = (kind, uuid)
        # If one transaction places claims of several requests, each request has an event with the same step.
        if steps.get(key) != (before, after):
            assert states.get(key) == before
        states[key], steps[key] = after, (before, after)
    return {key: state for key, state in states.items() if state is not None}


def final_states(database):
    states = {}
    for kind, table in (("provider", resource_providers), ("consumer", consumers)):
        rows = database.read(lambda db, table=table: db.execute(sa.select(table.c.uuid, table.c.generation)).all())
        states |= {(kind, row.uuid): row.generation for row in rows}
    return states


def test_a_reader_never_misses_pruned_events_silently(database):
    """A reader that lags behind the pruning gets 410; a reader that is ahead of it finds no gap."""
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
    assert database.recorder.prune() == 4
    refused = service("GET", f"/v1/events?after={slow}")
    assert (refused.status, refused.error["code"]) == (410, "placement.v1.position_lost")
    assert [event["position"][0] for event in service("GET", f"/v1/events?after={quick}").body["events"]] == ["6"]


@pytest.mark.parametrize("path", ["/v1/events", "/v1/history/{uuid}"])
def test_a_process_that_records_no_events_shows_the_events_of_others(database, path):
    uuid = "d0000000-0000-4000-8000-000000000001"
    assert placement(database)("POST", "/resource_providers", 39, {"uuid": uuid, "name": uuid}).status == 200
    with opened(database.url, history=HistorySettings(enabled=False)) as silent:
        service = placement(silent)
        assert service("POST", "/resource_providers", 39, {"uuid": uuid[:-1] + "2", "name": "x"}).status == 200
        assert len(service("GET", path.format(uuid=uuid)).body["events"]) == 1
