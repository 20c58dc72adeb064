"""The order of events in the database: one position for each transaction, and removal of old events."""

from __future__ import annotations

import contextlib
import datetime
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from placement import errors, extension
from placement.db import feed
from placement.db.connect import connect
from placement.db.schema.tables import change_writers
from placement.db.upkeep import sweep
from placement.db.writes import expired_writers
from placement.db.writes.notes import Advance
from placement.extensions.v1.history import pruning
from placement.extensions.v1.history import recorder as history
from placement.extensions.v1.history.recorder import HistorySettings
from placement.extensions.v1.history.tables import event_order, events
from tests import web
from tests.db import interleaving
from tests.db.extensions import event_rows as rows
from tests.db.extensions import replay
from tests.db.extensions.event_rows import chain, key, set_age, write
from tests.db.in_process import placement
from tests.made import opened

pytestmark = pytest.mark.every_database


@pytest.fixture
def call(database):
    return placement(database)


def test_events_are_in_the_order_of_their_commits(database):
    write(database, (key(1), None, 0), (key(2), None, 0))
    chain(database, key(1), 3)
    database.recorder.order()
    ordered = rows.in_order(database)
    assert [row[0] for row in ordered] == [1, 2, 3, 4, 5]
    rows.check(ordered)
    write(database, (key(1), 3, None))
    assert rows.count_without_position(database) == 1
    database.recorder.order()
    assert rows.in_order(database)[-1] == (6, key(1), 3, None)


def test_nothing_is_written_if_all_events_are_ordered(database):
    chain(database, key(1), 2)
    database.recorder.order()
    with watch_statements(database) as statements:
        database.recorder.order()
    _, select, commit = statements
    assert (select.split()[0], commit) == ("SELECT", "COMMIT")


def test_a_page_is_one_read_only_transaction_if_all_events_are_ordered(database, call):
    chain(database, key(1), 2)
    assert len(call("GET", "/v1/events").body["events"]) == 2
    with watch_statements(database) as statements:
        assert len(call("GET", "/v1/events").body["events"]) == 2
    end = statements.index("COMMIT")
    assert {select.split()[0] for select in statements[1:end]} == {"SELECT"}
    assert not {statement.split()[0] for statement in statements} - {"BEGIN", "START", "SELECT", "COMMIT"}


def test_a_page_orders_unordered_events_first(database, call):
    with opened(database.url) as other:
        chain(other, key(1), 2)
    assert len(call("GET", "/v1/events").body["events"]) == 2
    chain(database, key(1), 1, start=2)
    assert len(call("GET", f"/v1/history/{key(1)}").body["events"]) == 3
    assert rows.count_without_position(database) == 0


@contextlib.contextmanager
def watch_statements(database):
    """Collect the statements of all engines while a block runs."""
    statements = []

    def note(_connection, _cursor, statement, *_):
        statements.append(statement)

    engines = {database.engine, database.reading_engine}
    for engine in engines:
        sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        for engine in engines:
            sa.event.remove(engine, "before_cursor_execute", note)


def test_a_transaction_that_is_rolled_back_records_no_events(database):
    def work(db):
        db.note("provider", key(1), {}, advance=Advance(None, 0, 1))
        raise errors.NoAllocations(uuid="x")

    with pytest.raises(errors.NoAllocations):
        database.write(work)
    database.recorder.order()
    assert rows.in_order(database) == []


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_writes_with_the_same_timestamp_are_in_the_order_of_their_commits(database):
    """Moves of a provider do not change its generation."""
    with opened(database.url) as other:
        calls = [placement(database), placement(other)]
        roots = [str(uuid.uuid4()) for _ in range(3)]
        for name in roots:
            assert calls[0]("POST", "/resource_providers", body={"uuid": name, "name": name}).status == 200
        for number in range(6):
            body = {"name": roots[0], "parent_provider_uuid": roots[1 + number % 2]}
            assert calls[number % 2]("PUT", f"/resource_providers/{roots[0]}", body=body).status == 200
    database.write(lambda db: db.execute(sa.update(events).values(at=datetime.datetime(2026, 1, 1))))
    assert replay.untruths(database) == []


def test_generations_decide_the_order_if_clocks_are_wrong(database):
    """Each transaction is by another writer, as with several processes, and timestamps go backwards."""
    seconds = [7, 3, 9, 1, 8, 2, 6, 4, 5, 0]
    for generation in range(10):
        with opened(database.url) as other:
            chain(other, key(1), 1, start=generation)
    with database.engine.begin() as connection:
        for generation, second in enumerate(seconds):
            at = datetime.datetime(2026, 11, 1, 0, 0, second)
            connection.execute(sa.update(events).where(events.c.generation == generation + 1).values(at=at))
    database.recorder.order()
    ordered = rows.in_order(database)
    assert len(ordered) == 10
    rows.check(ordered)


def test_a_consumer_is_created_before_it_is_released_each_time(database, call):
    """Several processes write; the clocks of those that release are behind, and the steps alone form a cycle."""
    provider, consumer = key(1), key(2)
    assert call("POST", "/resource_providers", 39, {"uuid": provider, "name": "host"}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 9}}}
    assert call("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
    with contextlib.ExitStack() as stack:
        for number in range(4):
            other = stack.enter_context(opened(database.url))
            if number % 2:
                assert placement(other)("DELETE", f"/allocations/{consumer}").status == 204
            else:
                claim = {"allocations": {provider: {"resources": {"VCPU": 1}}}, "project_id": "p", "user_id": "u"}
                claim |= {"consumer_generation": None, "consumer_type": "INSTANCE"}
                assert placement(other)("PUT", f"/allocations/{consumer}", 39, claim).status == 204
    early = datetime.datetime(2026, 1, 1)
    of_consumer = (events.c.uuid == consumer) & (events.c.generation.is_(None))
    database.write(lambda db: db.execute(sa.update(events).where(of_consumer).values(at=early)))
    database.recorder.order()
    ordered = [row for row in rows.in_order(database) if row[1] == consumer]
    assert [row[2:] for row in ordered] == [(None, 1), (1, None)] * 2


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_overtaken_ordering_leaves_newer_transactions(database):
    """Another process has ordered the transactions that this one read; it must not go on forever with later ones."""
    chain(database, key(1), 3)

    def overtake():
        database.recorder.order()
        chain(database, key(1), 2, start=3)

    with (
        opened(database.url) as other,
        interleaving.just_before(other, lambda statement: statement.startswith("INSERT INTO event_order"), overtake),
    ):
        other.recorder.order()
    assert [row[0] for row in rows.in_order(database)] == [1, 2, 3]
    assert rows.count_without_position(database) == 2


def test_row_ids_distinguish_lifetimes_if_clocks_are_wrong(database, call):
    """Two processes write in turn, and the clock of one is far behind.

    The consumer is claimed, changed and released twice; the steps of both lifetimes are equal.
    """
    provider, consumer = key(1), key(2)
    assert call("POST", "/resource_providers", 39, {"uuid": provider, "name": "host"}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 9}}}
    assert call("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
    claim = {"allocations": {provider: {"resources": {"VCPU": 1}}}, "project_id": "p", "user_id": "u"}
    claim |= {"consumer_type": "INSTANCE"}
    writes = [
        ("PUT", {**claim, "consumer_generation": None}),
        ("PUT", {**claim, "consumer_generation": 1}),
        ("DELETE", None),
    ]
    # The two writers take turns, so that every wrong order of the lifetimes is a cycle.
    with opened(database.url) as slow, opened(database.url) as other:
        services = placement(slow), placement(other)
        for number, (method, body) in enumerate(writes * 2):
            assert services[number % 2](method, f"/allocations/{consumer}", 39, body).status == 204
        behind = slow.writers.idle[0].id
        early = datetime.datetime(2026, 1, 1)
        set_back = sa.update(events).where(events.c.writer_id == behind).values(at=early)
        database.write(lambda db: db.execute(set_back))
    database.recorder.order()
    ordered = [row for row in rows.in_order(database) if row[1] == consumer]
    assert [row[2:] for row in ordered] == [(None, 1), (1, 2), (2, None)] * 2
    assert replay.untruths(database) == []


_DELAY_INSERT = """
CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF pg_try_advisory_lock(8) THEN PERFORM pg_advisory_lock(7); END IF; RETURN NEW; END $$;
CREATE TRIGGER held_up BEFORE INSERT ON consumers FOR EACH ROW EXECUTE FUNCTION held_up()
"""


@pytest.fixture
def delay_insert(database):
    """Return a function that makes the next insertion of a consumer wait, after its row id is assigned.

    It waits for advisory lock 7.
    """
    yield lambda: execute(database, _DELAY_INSERT)
    execute(database, "DROP FUNCTION IF EXISTS held_up CASCADE")


def execute(database, statements):
    with database.engine.begin() as connection:
        connection.exec_driver_sql(statements)


@pytest.mark.usefixtures("patient_database")
@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_a_claim_delayed_between_row_id_and_insertion_comes_last(database, call, delay_insert):
    """Another process claims and releases the consumer meanwhile, on another provider, with a higher row id."""
    consumer = key(2)
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 9}}}
    claim = {"project_id": "p", "user_id": "u", "consumer_generation": None, "consumer_type": "INSTANCE"}
    claims = []
    for number, project in enumerate(("p", "late"), 3):
        provider = key(number)
        assert call("POST", "/resource_providers", 39, {"uuid": provider, "name": provider}).status == 200
        assert call("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
        claims.append({**claim, "allocations": {provider: {"resources": {"VCPU": 1}}}, "project_id": project})
        # This creates the row of the project, so that the test's claims need no retry.
        assert call("PUT", f"/allocations/{key(number + 2)}", 39, claims[-1]).status == 204
    path = f"/allocations/{consumer}"
    with opened(database.url) as other, ThreadPoolExecutor(1) as threads:
        delay_insert()
        with database.engine.begin() as holder:
            holder.exec_driver_sql("SELECT pg_advisory_xact_lock(7)")
            late = threads.submit(placement(other), "PUT", path, 39, claims[1])
            interleaving.wait_for_lock(database)
            assert call("PUT", path, 39, claims[0]).status == 204
            assert call("DELETE", path).status == 204
        assert late.result().status == 204
    of_consumer = sa.select(events.c.row_id).where(events.c.uuid == consumer).order_by(events.c.at)
    first, _, last = database.read(lambda db: db.execute(of_consumer).scalars().all())
    assert last < first, "the delayed claim has the lower row id"
    database.recorder.order()
    ordered = [row for row in rows.in_order(database) if row[1] == consumer]
    assert [row[2:] for row in ordered] == [(None, 1), (1, None), (None, 1)]
    consumer_events = call("GET", f"/v1/events?consumer={consumer}").body["events"]
    assert [event["project"] for event in consumer_events] == ["p", "p", "late"]
    assert replay.untruths(database) == []


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_two_processes_that_prune_at_once_remove_each_event_once(database):
    chain(database, key(1), 10)
    database.recorder.order()
    counts = []

    def locks_order(statement):
        return "event_order" in statement and interleaving.locking(statement)

    with (
        opened(database.url, history=HistorySettings(max_events=4)) as other,
        interleaving.just_before(other, locks_order, lambda: counts.append(prune(database, 6))),
    ):
        counts.append(other.recorder.prune())
    assert (sum(counts), len(rows.in_order(database))) == (6, 4)
    assert min(counts) >= 0


def prune(database, max_events):
    with opened(database.url, history=HistorySettings(max_events=max_events)) as other:
        return other.recorder.prune()


def test_concurrent_ordering_assigns_one_position_to_each_transaction(database):
    """Eight threads write and four order continuously, each with its own connections."""
    ended = threading.Event()

    def order(_):
        with opened(database.url) as other:
            while not ended.is_set():
                other.recorder.order()

    def writing(number):
        with opened(database.url) as other:
            chain(other, key(number), 40)

    with ThreadPoolExecutor(12) as pool:
        orders = [pool.submit(order, number) for number in range(4)]
        try:
            [*pool.map(writing, range(8))]
        finally:
            ended.set()
        for ordering in orders:
            ordering.result()
    database.recorder.order()
    ordered = rows.in_order(database)
    assert len(ordered) == 8 * 40
    assert rows.count_without_position(database) == 0
    rows.check(ordered)


def test_more_transactions_than_one_batch_are_ordered(database, monkeypatch):
    monkeypatch.setattr("placement.extensions.v1.history.order.BATCH", 3)
    chain(database, key(1), 10)
    database.recorder.order()
    ordered = rows.in_order(database)
    assert len(ordered) == 10
    rows.check(ordered)


def test_events_of_an_ended_writer_are_ordered(database):
    with opened(database.url) as other:
        chain(other, key(1), 3)
    old = datetime.datetime(2026, 1, 1)
    with database.engine.begin() as connection:
        connection.execute(sa.update(change_writers).values(seen_at=old))
    database.write(lambda db: expired_writers.end(db, datetime.datetime(2026, 6, 1)))
    assert any(id_ < 0 for id_ in database.read(lambda db: db.execute(sa.select(change_writers.c.id)).scalars().all()))
    assert rows.count_without_position(database) == 3
    database.recorder.order()
    rows.check(rows.in_order(database))
    assert rows.count_without_position(database) == 0


@pytest.mark.parametrize("was_ended", [False, True], ids=["ended", "cleared"])
def test_maintenance_orders_events_before_it_ends_writers(database, was_ended):
    """The events of a cleared writer cannot be found, so writers are kept while another thread orders events."""
    with opened(database.url) as other:
        chain(other, key(1), 3)
    (expired,) = writers(database)
    expire(database, expired)
    if was_ended:
        database.write(lambda db: expired_writers.end(db, datetime.datetime(2026, 6, 1)))
        expire(database, expired := -expired)
    chain(database, key(2), 3)
    writer = feed.Writer(database.writers.idle[0].id)
    with database.recorder._ordering._lock:
        database._attempts.maintain(writer)
    assert rows.count_without_position(database) == 6
    assert expired in writers(database)
    database._attempts.maintain(writer)
    assert rows.count_without_position(database) == 0
    ordered = rows.in_order(database)
    assert len(ordered) == 6
    rows.check(ordered)
    assert writers(database) == {writer.id} | (set() if was_ended else {-expired})


def writers(database):
    """Return the ids of the writers; the ids of ended writers are negative."""
    return set(database.read(lambda db: db.execute(sa.select(change_writers.c.id)).scalars().all()))


def expire(database, writer):
    """Make the lease of a writer expire."""
    old = {"seen_at": datetime.datetime(2026, 1, 1)}
    with database.engine.begin() as connection:
        connection.execute(sa.update(change_writers).where(change_writers.c.id == writer).values(old))


# --- pruning ---------------------------------------------------------------------------------------------------------


def positions(database):
    return database.read(lambda db: db.execute(sa.select(event_order.c.position)).scalars().all())


def chain_of_several(database, number):
    """Write a chain of transactions, each by another writer, as with several processes."""
    for generation in range(number):
        with opened(database.url) as other:
            chain(other, key(1), 1, start=generation)
    database.recorder.order()


def test_events_are_removed_after_their_retention(database):
    chain_of_several(database, 6)
    set_age(database, 4, 31)
    assert database.recorder.prune() == 4
    assert [row[0] for row in rows.in_order(database)] == [5, 6]
    assert sorted(positions(database)) == [5, 6]
    assert rows.count_without_position(database) == 0


def test_the_newest_transaction_is_kept_so_that_positions_continue(database):
    chain(database, key(1), 3)
    database.recorder.order()
    set_age(database, 3, 31)
    database.recorder.prune()
    assert positions(database) == [3]
    chain(database, key(1), 1, start=3)
    database.recorder.order()
    assert sorted(positions(database)) == [3, 4]


def test_the_oldest_events_are_removed_if_there_are_too_many(database):
    with opened(database.url, history=HistorySettings(max_events=4)) as bounded:
        for generation in range(5):
            write(bounded, (key(1), generation, generation + 1), (key(2), generation, generation + 1))
        bounded.recorder.order()
        assert bounded.recorder.prune() == 6
        assert [row[0] for row in rows.in_order(bounded)] == [7, 8, 9, 10]


@pytest.fixture
def old_events(database, monkeypatch):
    """Nine events that are too old; a batch removes two, and the newest event is always kept."""
    monkeypatch.setattr(pruning, "BATCH", 2)
    chain(database, key(1), 9)
    database.recorder.order()
    set_age(database, 9, 31)


def test_pruning_removes_batches(database, old_events):
    assert database.recorder.prune() == 8
    assert positions(database) == [9]


def test_old_events_are_removed_while_another_thread_orders(database, old_events):
    """Readers that poll order events almost continuously."""
    with database.recorder._ordering._lock:
        assert not database.recorder.maintain()
    assert positions(database) == [*range(3, 10)]


def test_writes_continue_the_pruning_that_maintenance_began(database, old_events, monkeypatch):
    monkeypatch.setattr(history, "_PAUSE_FACTOR", 0)
    database.recorder.maintain()
    remaining_positions = [positions(database)]
    for generation in range(9, 14):
        chain(database, key(1), 1, start=generation)
        remaining_positions.append(positions(database))
    assert remaining_positions == [[*range(first, 10)] for first in (3, 5, 7, 9, 9, 9)]
    # Events that become too old after the last batch are left to the next maintenance.
    database.recorder.order()
    set_age(database, 14, 31)
    chain(database, key(1), 1, start=14)
    assert sorted(positions(database)) == [*range(9, 15)]


def test_writes_between_two_batches_remove_nothing(database, old_events, monkeypatch):
    """A batch takes more than a microsecond, so the pause is longer than the test."""
    monkeypatch.setattr(history, "_PAUSE_FACTOR", 10**9)
    database.recorder.maintain()
    chain(database, key(1), 3, start=9)
    assert positions(database) == [*range(3, 10)]


@pytest.mark.every_database
def test_events_that_another_process_is_removing_are_skipped(database, old_events):
    """If the server supports SKIP LOCKED, nothing waits for that process; the next maintenance continues."""
    if database.url.get_backend_name() == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    with database.engine.connect() as other:
        other.execute(sa.delete(event_order).where(event_order.c.position <= 2))
        database.recorder.maintain()
        chain(database, key(1), 1, start=9)
        other.rollback()
    assert positions(database) == [*range(1, 10)]
    database.recorder.maintain()
    assert [row[0] for row in rows.in_order(database)] == [*range(3, 11)]


def test_a_write_succeeds_if_pruning_after_it_fails(database, caplog):
    with opened(database.url, history=HistorySettings(enabled=False)) as silent:
        silent.recorder.maintain()
        silent.write(lambda db: db.execute(sa.text("DROP TABLE event_order")))
        silent.recorder._next_batch = 0
        silent.write(lambda db: db.execute(sa.text("DROP TABLE events")))
    assert "Cannot remove old events: " in caplog.text
    assert not sa.inspect(database.engine).has_table("events")


def test_a_sweep_removes_old_events(database):
    chain(database, key(1), 5)
    database.recorder.order()
    set_age(database, 5, 31)
    assert history.remove_old_events(database) == [sweep.Swept("events", 4, 0)]


# --- configuration ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def connect_with_options(database, **history):
    """Provide the database as a service with these options of [history] connects to it."""
    url = database.url.render_as_string(hide_password=False)
    named = {f"history__{name}": value for name, value in history.items()}
    conf = web.configuration(placement_database__connection=url, **named)
    connected = connect(conf)
    extension.attach(connected, conf)
    try:
        yield connected
    finally:
        connected.dispose()


@pytest.mark.parametrize("enabled", [True, False])
def test_recording_is_configured(database, enabled):
    with connect_with_options(database, enabled=enabled) as service:
        chain(service, key(1), 3)
        service.recorder.order()
        assert len(rows.in_order(service)) == (3 if enabled else 0)
        assert rows.count_without_position(service) == 0


def test_the_retention_of_events_is_configured(database):
    with connect_with_options(database, retention_days=2) as service:
        chain(service, key(1), 6)
        service.recorder.order()
        set_age(service, 6, 1)
        set_age(service, 4, 3)
        assert service.recorder.prune() == 4
        assert [row[0] for row in rows.in_order(service)] == [5, 6]


def test_the_maximum_number_of_events_is_configured(database):
    """The smallest number that can be configured is large, so these transactions are large."""
    with connect_with_options(database, max_events=1000) as service:
        for generation in range(3):
            write(service, *((key(number), generation, generation + 1) for number in range(400)))
        service.recorder.order()
        assert service.recorder.prune() == 400
        assert [row[0] for row in rows.in_order(service)] == [*range(401, 1201)]
