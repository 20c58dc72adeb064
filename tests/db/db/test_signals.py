"""The events of real work: causes, counts, and the time of each statement."""

from __future__ import annotations

import threading
import time
import uuid

import pytest
import sqlalchemy as sa

from placement import errors, signals
from placement.checks import finding
from placement.checks.examination import Check, NotMadeError, Subject, examine
from placement.db import feed
from placement.db.engine import dialects
from placement.db.schema.tables import inventories, projects, resource_providers
from placement.db.writes import attempt
from placement.db.writes.transaction import Collision
from placement.extensions.v1.history import event_order, event_pruning
from placement.extensions.v1.history.event_watch import EventWatch
from placement.extensions.v1.history.recorder import HistorySettings
from placement.index.live import LiveIndex
from tests import web
from tests.clock import PATIENCE
from tests.db.event_rows import aged, chain, key
from tests.db.in_process import placement
from tests.load.storm import holding
from tests.made import opened


class Received(list):
    """Records the facts of each event."""

    def __init__(self, *names):
        self.names = names
        self.listeners = {name: self._listener(name) for name in names}

    def _listener(self, name):
        return lambda *facts: self.append((name, *facts))

    def of(self, name):
        return [facts[1:] for facts in self if facts[0] == name]


@pytest.fixture
def received():
    received = Received(
        *("timing", "driver_error", "retried", "refreshed", "reloaded", "searched"),
        *("events_recorded", "events_pruned", "history_measured", "transactions_unordered", "transactions_ordered"),
        *("waiting_changed", "wait_refused", "examined"),
    )
    for name, listener in received.listeners.items():
        getattr(signals, name).connect(listener)
    yield received
    for name, listener in received.listeners.items():
        getattr(signals, name).disconnect(listener)


def host(service, total=4):
    provider = str(uuid.uuid4())
    assert service("POST", "/resource_providers", 39, {"uuid": provider, "name": provider}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total}}}
    assert service("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
    return provider


def test_a_search_publishes_its_outcome_and_obstacle(database, received):
    service = placement(database)
    for _ in range(3):
        host(service)

    def search(query):
        assert service("GET", f"/allocation_candidates?{query}").status == 200
        [(seconds, *outcome)] = received.of("searched")
        received.clear()
        assert 0 < seconds < PATIENCE
        return outcome

    assert search("resources=VCPU:1") == [3, False, ""]
    assert search("resources=VCPU:1&limit=2") == [2, True, ""]
    assert search("resources=VCPU:1&limit=3") == [3, True, ""]
    assert search("resources=VCPU:5") == [0, False, "resources"]
    assert search("resources=VCPU:1&required=HW_CPU_X86_AVX") == [0, False, "required"]
    assert search(f"resources=VCPU:1&member_of={uuid.uuid4()}") == [0, False, "member_of"]
    isolated = "&".join(f"resources{n}=VCPU:1" for n in range(2))
    assert search(f"{isolated}&group_policy=isolate") == [0, False, "combination"]


def test_the_index_publishes_what_it_missed_and_why_it_reads_everything(database, received):
    service, live_index = placement(database), LiveIndex(database, verify_interval=0)

    def refresh():
        received.clear()
        live_index.current()
        [(seconds, missed, providers)] = received.of("refreshed")
        assert 0 < seconds < PATIENCE
        return [cause for (cause,) in received.of("reloaded")], missed, providers

    host(service)
    assert refresh() == (["start"], 0, 1)
    assert refresh() == ([], 0, 1)
    host(service)
    assert refresh() == ([], 2, 2)  # the provider, and its inventory
    # Usage of a provider that was deleted without a row in the feed.
    gone = database.read(lambda db: db.execute(sa.select(sa.func.max(resource_providers.c.id))).scalar())
    with database.engine.begin() as connection:
        connection.execute(sa.delete(inventories).where(inventories.c.resource_provider_id == gone))
        connection.execute(sa.update(resource_providers).values(root_provider_id=None))
        connection.execute(sa.delete(resource_providers).where(resource_providers.c.id == gone))
    database.write(lambda db: db.changed(gone, feed.USAGE))
    assert refresh() == (["out_of_step"], 1, 1)
    assert "index" in [name for name, _ in received.of("timing")]


def test_an_index_that_differs_publishes_it(database, received, caplog):
    service, live_index = placement(database), LiveIndex(database, verify_interval=1e-9)
    host(service)
    live_index.current()
    with database.engine.begin() as connection:  # without a row in the feed
        connection.execute(sa.update(resource_providers).values(generation=resource_providers.c.generation + 7))
    received.clear()
    live_index.current()
    assert received.of("reloaded") == [("differs",)]


def test_a_retry_publishes_its_cause(database, received):
    attempts = []

    def work(_db):
        attempts.append(None)
        if len(attempts) == 1:
            raise Collision

    database.write(work)
    assert received.of("retried") == [("changed",)]
    assert received.of("driver_error") == []


def test_no_retry_is_published_after_the_last_attempt(database, received):
    def work(_db):
        raise Collision

    with pytest.raises(errors.TooManyConflicts):
        database.write(work, attempts=3)
    assert received.of("retried") == [("changed",)] * 2


def test_a_driver_error_is_published_with_its_label(database, received):
    name = str(uuid.uuid4())
    attempts = []

    def insert(db):
        attempts.append(None)
        db.execute(sa.insert(projects).values(external_id=name if len(attempts) < 3 else f"{name} again"))

    database.write(insert)
    database.write(insert)
    assert received.of("driver_error") == [("duplicate",)]
    assert received.of("retried") == [("duplicate",)]
    with pytest.raises(sa.exc.SQLAlchemyError):
        database.write(lambda db: db.execute(sa.text("SELEKT 1")))
    assert received.of("driver_error")[1:] == [("bug",)]


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_deadlock_is_published_as_one(database, received):
    service = placement(database)
    one, other = host(service), host(service)
    barrier = threading.Barrier(2)

    def lock(first, second):
        attempts = []

        def work(db):
            attempts.append(None)
            db.execute(sa.update(resource_providers).where(resource_providers.c.uuid == first).values(name=first))
            if len(attempts) == 1:
                barrier.wait(PATIENCE)  # each holds one lock, and waits for the other
            db.execute(sa.update(resource_providers).where(resource_providers.c.uuid == second).values(name=second))

        database.write(work)

    received.clear()
    threads = [threading.Thread(target=lock, args=pair) for pair in [(one, other), (other, one)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The attempt that is run again may collide a second time.
    assert set(received.of("driver_error")) == {("deadlock",)}
    assert received.of("retried") == received.of("driver_error")


def test_each_statement_and_commit_is_timed_once_statements_are_timed(database, received):
    service = placement(database)
    provider = host(service)
    service("PUT", f"/allocations/{uuid.uuid4()}", 39, holding([provider]))  # creates its project and user
    received.clear()
    claim = holding([provider])
    assert service("PUT", f"/allocations/{uuid.uuid4()}", 39, claim).status == 204
    assert [name for name, _ in received.of("timing")].count("sql") == 1  # COMMIT

    database.time_statements()
    received.clear()
    assert service("PUT", f"/allocations/{uuid.uuid4()}", 39, claim).status == 204
    spent = received.of("timing")
    statements = [seconds for name, seconds in spent if name == "sql"]
    whole = sum(seconds for name, seconds in spent if name == "database")
    # A claim is at most eight statements, COMMIT counted; SQLite has BEGIN, too.
    assert 6 <= len(statements) <= 9
    assert 0 < sum(statements) < whole
    received.clear()
    with pytest.raises(sa.exc.SQLAlchemyError):
        database.read(lambda db: db.execute(sa.text("SELEKT 1")))
    assert [name for name, _ in received.of("timing")] == ["sql", "database"]


# --- the history ---


def test_events_are_published_by_kind_once_they_are_committed(database, received):
    service = placement(database)
    provider = host(service)
    received.clear()
    assert service("PUT", f"/allocations/{uuid.uuid4()}", 39, holding([provider])).status == 204
    assert received.of("events_recorded") == [({"consumer": 1, "provider": 1},)]
    received.clear()
    assert service("PUT", f"/allocations/{uuid.uuid4()}", 39, holding({provider: {"VCPU": 99}})).status == 409
    dry_run = f"/allocations/{uuid.uuid4()}?dry_run=true"
    assert service("PUT", dry_run, 39, holding([provider])).body["dry_run"]["status"] == 204
    assert received.of("events_recorded") == []


def test_an_attempt_that_is_run_again_publishes_its_events_once(database, received):
    attempts = []

    def work(db):
        noting_a_trait(db)
        attempts.append(None)
        if len(attempts) == 1:
            raise Collision

    database.write(work)
    assert received.of("events_recorded") == [({"trait": 1},)]


def test_events_that_are_rolled_back_at_their_commit_are_not_published(database, received, monkeypatch):
    commits = []

    def fail_once(connection):
        commits.append(received.of("events_recorded"))
        if len(commits) == 1:
            raise Collision
        dialects.commit(connection)

    monkeypatch.setattr(attempt, "_commit", fail_once)
    with pytest.raises(Collision):
        database._attempts.commit(noting_a_trait, 1)
    database.write(noting_a_trait)
    assert commits == [[], []]
    assert received.of("events_recorded") == [({"trait": 1},)]


def noting_a_trait(db):
    db.note("trait", "CUSTOM_A", {("name",): (None, "CUSTOM_A")})


def test_the_order_publishes_what_waits_for_it(database, received):
    chain(database, key(1), 3)
    database.recorder.order()
    assert received.of("transactions_unordered") == [(3,), (0,)]
    assert received.of("transactions_ordered") == [(3,)]
    received.clear()
    database.recorder.order()
    assert received.of("transactions_unordered") == [(0,)]
    assert received.of("transactions_ordered") == []


def test_transactions_wait_for_an_order_that_cannot_be_written(database, received, monkeypatch):
    chain(database, key(1), 3)

    def refuse(*_, **_options):
        raise errors.DatabaseUnavailable()

    monkeypatch.setattr(database, "write", refuse)
    with pytest.raises(errors.DatabaseUnavailable):
        database.recorder.order()
    assert received.of("transactions_unordered") == [(3,)]
    assert received.of("transactions_ordered") == []


def test_an_order_after_a_gap_is_logged_and_others_are_not(database, caplog, monkeypatch):
    caplog.set_level("INFO", "placement.extensions.v1.history.event_order")
    chain(database, key(1), 3)
    database.recorder.order()
    assert caplog.messages == []
    monkeypatch.setattr(event_order, "BATCH", 2)
    chain(database, key(2), 3)
    database.recorder.order()
    [said] = caplog.messages
    assert said.startswith("The history has put 3 transactions in order, since 20")


def test_maintenance_publishes_how_long_the_history_is(database, received):
    assert database.recorder.maintain()
    assert received.of("history_measured") == [(0, 0.0)]
    chain(database, key(1), 5)
    received.clear()
    assert database.recorder.maintain()
    [(events, oldest)] = received.of("history_measured")
    assert (events, 0 <= oldest < 600) == (5, True)
    assert {cause: number for cause, number in received.of("events_pruned") if number} == {}


def test_pruning_publishes_how_much_was_too_old_and_how_much_too_much(database, received):
    chain(database, key(1), 10)
    database.recorder.order()
    aged(database, 4, 3)
    aged(database, 2, 31)
    with opened(database.url, history=HistorySettings(max_events=7)) as bounded:
        assert bounded.recorder.prune() == 3
    assert received.of("events_pruned") == [("retention_days", 2), ("max_events", 1)]
    [(events, oldest)] = received.of("history_measured")
    assert (events, round(oldest / 86400)) == (7, 3)


def test_a_history_of_which_only_the_newest_is_left_is_measured(database, received, monkeypatch):
    monkeypatch.setattr(event_pruning, "BATCH", 2)
    chain(database, key(1), 5)
    database.recorder.order()
    aged(database, 5, 40)
    database.recorder.prune()
    assert [(left, round(age / 86400)) for left, age in received.of("history_measured")] == [(3, 40), (1, 40), (1, 40)]


def test_waiting_requests_are_published_and_those_that_may_not(received):
    watch = EventWatch(lambda: 0)
    assert watch.enter()
    assert not watch.enter()
    watch.leave()
    assert received.of("waiting_changed") == [(1,), (0,)]
    assert received.of("wait_refused") == [()]


def test_the_time_that_a_request_waits_is_published(received):
    watch = EventWatch(lambda: 7)
    assert watch.wait(6, time.monotonic() + PATIENCE)
    assert not watch.wait(7, time.monotonic())
    assert [name for name, _ in received.of("timing")] == ["wait", "wait"]


def test_an_examination_publishes_its_findings(database, received):
    def found(_subject):
        yield finding.error("a")
        yield finding.error("b")
        yield finding.info("c")

    def none(_subject):
        return ()

    def not_made(_subject):
        raise NotMadeError("not here")

    made = [Check("found", found, "data"), Check("none", none, "data"), Check("not_made", not_made, "data")]
    examine(Subject(web.configuration(), database), made)
    assert received.of("examined") == [
        (
            {
                ("found", "error"): 2,
                ("found", "warning"): 0,
                ("found", "info"): 1,
                ("none", "error"): 0,
                ("none", "warning"): 0,
                ("none", "info"): 0,
            },
        )
    ]
