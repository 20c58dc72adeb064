"""Pages of events: their order, filters and names, waiting requests, and lost positions."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db.writes import notes as events_of
from placement.extensions.v1.event_reader import EventReader, EventStream
from placement.extensions.v1.failures import PositionLost
from placement.extensions.v1.history import event, subject, watch
from placement.extensions.v1.history.event import EventFilter
from placement.extensions.v1.history.tables import event_order, events
from placement.index.live import LiveIndex
from tests.clock import PATIENCE
from tests.db import faults
from tests.db.extensions.bare_metal import Nodes
from tests.db.extensions.event_rows import chain, key, write
from tests.db.faults import Plan, plant
from tests.db.in_process import placement

ALL = EventFilter()


def read(database, condition=ALL, limit=100, mark=None, *, newest_first=False):
    database.recorder.order()
    return database.snapshot(lambda db: event.page(db, condition, limit, mark, newest_first=newest_first))


def follow(database, condition=ALL, limit=100, mark=None, *, newest_first=False):
    """Read all pages, and return their events."""
    collected = []
    while True:
        page = read(database, condition, limit, mark, newest_first=newest_first)
        assert len(page.events) <= limit
        collected += page.events
        mark = page.mark
        if not page.more:
            return collected


def generations(recorded_events):
    return [recorded.generations for recorded in recorded_events]


def test_a_history_without_events_has_a_position(database):
    page = read(database)
    assert page[:4] == ([], 0, event.START_MARK, False)
    chain(database, key(1), 1)
    assert generations(read(database, mark=page.mark).events) == [(0, 1)]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_of_any_size_contain_each_event_once(database, limit):
    write(database, (key(1), None, 0), (key(2), None, 0), (key(3), None, 0))
    chain(database, key(1), 4)
    forward = follow(database, limit=limit)
    assert [recorded.number for recorded in forward] == [1, 2, 3, 4, 5, 6, 7]
    backward = follow(database, limit=limit, newest_first=True)
    assert backward == forward[::-1]


def test_every_event_has_the_request_that_its_first_row_contains(database):
    write(database, (key(1), None, 0), (key(2), None, 0))
    write(database, (key(1), 0, 1), by=None)
    collected = follow(database)
    assert [recorded.request and recorded.request["request_id"] for recorded in collected] == ["req-1", "req-1", None]


@pytest.mark.parametrize("window", [2, 20_000])
@pytest.mark.parametrize("newest_first", [False, True])
def test_events_are_selected_by_filters(database, window, newest_first, monkeypatch):
    """A page that examines two events contains few matches, and the next page continues after it."""
    monkeypatch.setattr(event, "WINDOW", window)
    chain(database, key(1), 5)
    write(database, (key(7), None, 1), kind="consumer", project="mine")
    chain(database, key(2), 5)
    write(database, (key(7), 1, None), kind="consumer", project="mine")
    chain(database, key(1), 2, start=5)

    def matches(**conditions):
        return generations(follow(database, EventFilter(**conditions), limit=2, newest_first=newest_first))

    def in_page_order(*pairs):
        return [*pairs][::-1] if newest_first else [*pairs]

    assert matches(uuids=(key(1),)) == in_page_order(*((number, number + 1) for number in range(7)))
    assert matches(project="mine") == in_page_order((None, 1), (1, None))
    assert matches(kinds=("consumer",)) == in_page_order((None, 1), (1, None))
    assert matches(uuids=(key(7),), kinds=("provider",)) == []
    assert matches(uuids=(key(9),)) == []


@pytest.mark.every_database
@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize(
    "condition", [EventFilter(project="mine"), EventFilter(uuids=(key(7),))], ids=["project", "uuid"]
)
def test_rare_events_form_one_page_with_any_number_of_others_between_them(
    database, condition, newest_first, monkeypatch
):
    monkeypatch.setattr(event, "WINDOW", 3)
    steps = [(None, 1), (1, 2), (2, None)]
    for number, step in enumerate(steps):
        write(database, (key(7), *step), kind="consumer", project="mine")
        write(database, (key(8), *step), kind="consumer", project="other")
        chain(database, key(1), 5, start=5 * number)
    page = read(database, condition, newest_first=newest_first)
    assert generations(page.events) == (steps[::-1] if newest_first else steps)
    assert not page.more


def test_events_are_selected_by_time(database):
    """The clocks of servers differ, so the timestamps are not in the order of positions."""
    seconds = (0, 20, 70, 40, 60, 80)
    chain(database, key(1), len(seconds))
    database.recorder.order()
    begin = datetime.datetime(2026, 11, 1)
    with database.engine.begin() as connection:
        for position, second in enumerate(seconds, 1):
            at = begin + datetime.timedelta(seconds=second)
            connection.execute(sa.update(event_order).where(event_order.c.position == position).values(at=at))
            connection.execute(sa.update(events).where(events.c.generation == position).values(at=at))

    def numbers(second, **options):
        condition = EventFilter(since=begin + datetime.timedelta(seconds=second))
        return [recorded.number for recorded in follow(database, condition, **options)]

    assert numbers(35) == [3, 4, 5, 6]
    assert numbers(35, newest_first=True) == [6, 5, 4, 3]
    assert numbers(80) == [6]
    assert numbers(81) == numbers(3600) == []
    assert read(database, EventFilter(since=begin)).number == 6


def test_the_earliest_date_is_before_all_events(database):
    chain(database, key(1), 2)
    database.recorder.order()
    assert [recorded.number for recorded in follow(database, EventFilter(since=datetime.datetime.min))] == [1, 2]


def test_the_next_event_follows_the_newest_position(database):
    chain(database, key(1), 3)
    database.recorder.order()
    number, mark = database.read(event.newest_position)
    assert number == 3
    chain(database, key(1), 1, start=3)
    assert generations(read(database, mark=mark).events) == [(3, 4)]


def test_a_deleted_provider_is_found_by_its_name(database):
    write(database, (key(1), None, 0))
    write(database, (key(1), 0, None))
    database.recorder.order()
    assert database.read(lambda db: subject.find_by_name(db, f"n-{key(1)}")) == key(1)
    assert database.read(lambda db: subject.find_by_name(db, "other")) is None


def note_rename(database, uuid, new, generation):
    """Write an event that renames a provider from "old"."""
    advance = events_of.Advance(None, generation, generation)
    database.write(lambda db: db.note(events_of.PROVIDER, uuid, {("name",): ("old", new)}, advance=advance))


def test_a_provider_is_found_by_its_former_name(database):
    """Only the rename contains a name that is older than the history."""
    note_rename(database, key(1), "new", 4)
    [rename] = read(database).events
    assert (rename.name, rename.changes) == ("new", {"name": ["old", "new"]})
    assert database.read(lambda db: subject.find_by_name(db, "old")) == key(1)
    write(database, (key(2), None, 0))
    note_rename(database, key(2), "other", 0)
    database.recorder.order()
    assert database.read(lambda db: subject.find_by_name(db, "old")) == key(2), "it had the name last"


def test_a_node_with_a_name_takes_precedence_over_former_names_of_providers(database):
    """A provider had the name more recently."""
    node = Nodes(database).node("machine")
    write(database, (key(1), None, 0))
    database.write(lambda db: db.note(events_of.PROVIDER, key(1), {("name",): ("machine", "other")}))
    assert placement(database)("GET", "/v1/history/machine").body["uuid"] == node
    assert database.read(lambda db: subject.find_by_name(db, "machine")) == key(1)


def test_events_of_a_machine_contain_the_name_of_its_node(database):
    """The name of its provider is its uuid; a node without a name is left out."""
    nodes = Nodes(database)
    machine, nameless = nodes.node("machine"), nodes.node(None)
    service = placement(database)
    names_of_events = [
        listed_event["names"] for listed_event in service("GET", f"/v1/history/{machine}").body["events"]
    ]
    assert {"provider", "node"} <= {
        listed_event["kind"] for listed_event in service("GET", f"/v1/history/{machine}").body["events"]
    }
    assert all(names == {machine: "machine"} for names in names_of_events)
    assert all(listed_event["names"] == {} for listed_event in service("GET", f"/v1/history/{nameless}").body["events"])


def test_a_stream_contains_the_names_of_mentioned_objects(database):
    service = placement(database)
    for name in ("host", "other"):
        assert service("POST", "/resource_providers", 39, {"uuid": key(len(name)), "name": name}).status == 200
    with contextlib.closing(EventStream(EventReader(database, LiveIndex(database), ALL, 100), None)) as stream:
        pieces = iter(stream)
        next(pieces)
        messages = re.findall(rb"^data: (.*)", next(pieces), re.MULTILINE)
    assert [json.loads(message)["names"] for message in messages] == [{key(4): "host"}, {key(5): "other"}]


def test_the_first_page_of_a_deleted_provider_may_contain_no_events(database, monkeypatch):
    """The page examines two events, and the events of the provider come later."""
    monkeypatch.setattr(event, "WINDOW", 2)
    chain(database, key(2), 3)
    chain(database, key(1), 3)
    service = placement(database)
    pages = [service("GET", f"/v1/history/{key(1)}").body]
    while pages[-1]["next"]:
        pages.append(service("GET", "/v1" + pages[-1]["next"].partition("/v1")[2]).body)
    assert {page["present"] for page in pages} == {False}
    assert [len(page["events"]) for page in pages] == [0, 1, 2]


@pytest.mark.parametrize("spell", [str, str.upper])
def test_the_events_of_a_consumer_are_found_by_every_spelling_of_its_uuid(database, spell):
    """``POST /allocations`` keeps the spelling of the client; ``PUT`` does not."""
    service = placement(database, LiveIndex(database))
    consumer = spell("abcdefab-0000-4000-8000-00000000000c")
    claim = claim_of_new_host(service)
    with ThreadPoolExecutor(1) as threads:
        # No row has the uuid yet, so its spelling cannot be looked up.
        waiting = threads.submit(service, "GET", f"/v1/events?consumer={consumer.upper()}&after=now&wait=60")
        while not database.recorder.watch._waiting:
            time.sleep(0.01)
        assert service("POST", "/allocations", 39, {consumer: claim}).status == 204
        assert [listed_event["uuid"] for listed_event in waiting.result().body["events"]] == [consumer]
    assert database.recorder.watch._waiting == 0, "the request no longer counts as waiting"
    for ended in (False, True):
        if ended:
            assert service("DELETE", f"/allocations/{consumer}").status == 204
        for spelling in {consumer, consumer.upper()}:
            listed = service("GET", f"/v1/events?consumer={spelling}").body["events"]
            assert [listed_event["uuid"] for listed_event in listed] == [consumer] * (1 + ended), spelling
            history = service("GET", f"/v1/history/{spelling}").body
            assert (history["uuid"], history["present"], len(history["events"])) == (consumer, not ended, 1 + ended)


def claim_of_new_host(service):
    """Create a host, and return the body of a claim on it."""
    provider = key(1)
    assert service("POST", "/resource_providers", 39, {"uuid": provider, "name": "host"}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 9}}}
    assert service("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
    owner = {"project_id": "p", "user_id": "u", "consumer_generation": None, "consumer_type": "INSTANCE"}
    return {"allocations": {provider: {"resources": {"VCPU": 1}}}, **owner}


@pytest.mark.parametrize("fails", [False, True])
def test_a_stream_ends_with_the_position_it_reached(database, monkeypatch, fails):
    """The stream examined events that do not match, and a client that resumes must not make it examine them again."""
    monkeypatch.setattr(event, "WINDOW", 2)
    monkeypatch.setattr(database.recorder.watch, "max_waiting", int(fails))
    chain(database, key(1), 3)
    condition = EventFilter(kinds=("consumer",))
    reached = read(database, condition)
    assert (reached.number, reached.more) == (2, True)
    with contextlib.closing(EventStream(EventReader(database, LiveIndex(database), condition, 100), None)) as stream:
        pieces = iter(stream)
        assert next(pieces).startswith(b"retry")
        with plant(database, Plan(1, [faults.lose] * fails, permanent=True)):
            assert [*pieces] == [b": \nid: %s\n\n" % reached.mark.encode()]


# --- requests that may not wait ---


@pytest.fixture
def long_interval(monkeypatch):
    """Treat a read of the newest position as recent for the whole test."""
    monkeypatch.setattr(watch, "INTERVAL", PATIENCE)


def test_requests_that_may_not_wait_share_a_page_without_reading_the_database(database, monkeypatch, long_interval):
    monkeypatch.setattr(database.recorder.watch, "max_waiting", 0)
    chain(database, key(1), 2)
    reader = EventReader(database, LiveIndex(database), ALL, 100)
    some = reader.wait(None, 60)
    nothing = reader.wait(some.mark, 60)
    assert ([recorded.uuid for recorded in some.events], nothing.events) == ([key(1)] * 2, [])
    with plant(database, Plan(1, [faults.lose], permanent=True)):
        assert [reader.wait(None, 60), reader.wait(some.mark, 60)] == [some, nothing]
        with contextlib.closing(EventStream(reader, some.mark)) as stream:
            assert [*stream][1:] == [b": \nid: %s\n\n" % some.mark.encode()]
        for uncached in (
            lambda: reader.page(some.mark),
            lambda: EventReader(database, LiveIndex(database), ALL, 99).wait(some.mark, 60),
        ):
            with pytest.raises(errors.Failure):
                uncached()


def test_a_new_event_seen_by_waiting_requests_is_shown_to_others_at_once(database, monkeypatch):
    watch = database.recorder.watch
    monkeypatch.setattr(watch, "max_waiting", 1)
    chain(database, key(1), 1)
    reader = EventReader(database, LiveIndex(database), ALL, 100)
    mark = reader.wait(None, 60).mark
    assert watch.enter()
    nothing = reader.wait(mark, 60)
    chain(database, key(2), 1)
    assert watch.wait(nothing.number, time.monotonic() + PATIENCE)
    assert [recorded.uuid for recorded in reader.wait(mark, 60).events] == [key(2)]
    watch.leave()


def test_requests_that_have_waited_read_in_turn(database):
    chain(database, key(1), 1)
    reader = EventReader(database, LiveIndex(database), ALL, 100)
    page = reader.first_page(event.START_MARK)
    woken = page._replace(number=0, mark=event.START_MARK)
    assert reader.next_page(woken, time.monotonic() + PATIENCE) == page
    with reader.watch._turn:
        assert reader.next_page(woken, time.monotonic()).events == []
    with plant(database, Plan(1, [faults.lose], permanent=True)), pytest.raises(errors.Failure):
        reader.next_page(page, time.monotonic() + PATIENCE)
    assert reader.next_page(woken, time.monotonic() + PATIENCE) == page, "the turn was released"


# --- lost positions --------------------------------------------------------------------------------------------------


def delete_order(database, condition):
    with database.engine.begin() as connection:
        connection.execute(sa.delete(event_order).where(condition))


def test_a_position_followed_by_pruned_events_is_lost(database):
    chain(database, key(1), 6)
    marks = [recorded.mark for recorded in follow(database)]
    delete_order(database, event_order.c.position <= 3)
    for mark in (event.START_MARK, *marks[:3]):
        with pytest.raises(PositionLost):
            read(database, mark=mark)
    assert generations(read(database, mark=marks[3]).events) == [(4, 5), (5, 6)]


def test_a_position_from_before_a_restore_is_lost(database):
    """The backup contains two transactions; after the restore, others get the positions of the missing ones."""
    chain(database, key(1), 4)
    marks = [recorded.mark for recorded in follow(database)]
    with database.engine.begin() as connection:
        connection.execute(sa.delete(event_order).where(event_order.c.position > 2))
        connection.execute(sa.delete(events).where(events.c.generation > 2))
    for mark in marks[2:]:
        with pytest.raises(PositionLost):
            read(database, mark=mark)
    database.writers.drop_idle()
    chain(database, key(1), 2, start=2)
    for mark in marks[2:]:
        with pytest.raises(PositionLost):
            read(database, mark=mark)
    assert generations(read(database, mark=marks[1]).events) == [(2, 3), (3, 4)]


@pytest.mark.parametrize("mark", ["0-00000001", "1-00000000", "999999999999999999-00000000"])
def test_a_position_that_never_existed_is_lost(database, mark):
    with pytest.raises(PositionLost):
        read(database, mark=mark)
    chain(database, key(1), 1)
    with pytest.raises(PositionLost):
        read(database, mark=mark)
