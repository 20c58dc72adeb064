"""Signals of the history: events recorded, ordered and removed, and waiting requests."""

from __future__ import annotations

import time
import uuid

import pytest

from placement import errors
from placement.db.engine import dialects
from placement.db.writes.transaction import Collision
from placement.extensions.v1 import signals
from placement.extensions.v1.history import order, pruning
from placement.extensions.v1.history.recorder import HistorySettings
from placement.extensions.v1.history.watch import EventWatch
from tests.clock import PATIENCE
from tests.db.extensions.event_rows import chain, key, set_age
from tests.db.in_process import placement
from tests.load.storm import holding
from tests.made import opened


@pytest.fixture
def received(received):
    with received.recording(signals):
        yield received


def create_host(service, total=4):
    provider = str(uuid.uuid4())
    assert service("POST", "/resource_providers", 39, {"uuid": provider, "name": provider}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total}}}
    assert service("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
    return provider


def test_events_are_published_by_kind_after_their_commit(database, received):
    service = placement(database)
    provider = create_host(service)
    received.clear()
    assert service("PUT", f"/allocations/{uuid.uuid4()}", 39, holding([provider])).status == 204
    assert received.of("events_recorded") == [({"consumer": 1, "provider": 1},)]
    received.clear()
    assert service("PUT", f"/allocations/{uuid.uuid4()}", 39, holding({provider: {"VCPU": 99}})).status == 409
    dry_run = f"/allocations/{uuid.uuid4()}?dry_run=true"
    assert service("PUT", dry_run, 39, holding([provider])).body["dry_run"]["status"] == 204
    assert received.of("events_recorded") == []


def test_a_retried_write_publishes_its_events_once(database, received):
    attempts = []

    def work(db):
        note_a_trait(db)
        attempts.append(None)
        if len(attempts) == 1:
            raise Collision

    database.write(work)
    assert received.of("events_recorded") == [({"trait": 1},)]


def test_events_whose_commit_fails_are_not_published(database, received, monkeypatch):
    commits, commit = [], dialects.commit

    def fail_once(connection):
        commits.append(received.of("events_recorded"))
        if len(commits) == 1:
            raise Collision
        commit(connection)

    monkeypatch.setattr(dialects, "commit", fail_once)
    with pytest.raises(Collision):
        database._attempts.commit(note_a_trait, 1)
    database.write(note_a_trait)
    assert commits == [[], []]
    assert received.of("events_recorded") == [({"trait": 1},)]


def note_a_trait(db):
    db.note("trait", "CUSTOM_A", {("name",): (None, "CUSTOM_A")})


def test_ordering_publishes_the_number_of_unordered_transactions(database, received):
    chain(database, key(1), 3)
    database.recorder.order()
    assert received.of("transactions_unordered") == [(3,), (0,)]
    assert received.of("transactions_ordered") == [(3,)]
    received.clear()
    database.recorder.order()
    assert received.of("transactions_unordered") == [(0,)]
    assert received.of("transactions_ordered") == []


def test_transactions_whose_order_cannot_be_written_count_as_unordered(database, received, monkeypatch):
    chain(database, key(1), 3)

    def refuse(*_, **_options):
        raise errors.DatabaseUnavailable()

    monkeypatch.setattr(database, "write", refuse)
    with pytest.raises(errors.DatabaseUnavailable):
        database.recorder.order()
    assert received.of("transactions_unordered") == [(3,)]
    assert received.of("transactions_ordered") == []


def test_ordering_is_logged_only_with_more_than_one_batch(database, caplog, monkeypatch):
    caplog.set_level("INFO", "placement.extensions.v1.history.order")
    chain(database, key(1), 3)
    database.recorder.order()
    assert caplog.messages == []
    monkeypatch.setattr(order, "BATCH", 2)
    chain(database, key(2), 3)
    database.recorder.order()
    [message] = caplog.messages
    assert message.startswith("Assigned positions to the events of 3 transactions since 20")


def test_maintenance_publishes_the_length_and_age_of_the_history(database, received):
    assert database.recorder.maintain()
    assert received.of("history_measured") == [(0, 0.0)]
    chain(database, key(1), 5)
    received.clear()
    assert database.recorder.maintain()
    [(events, oldest)] = received.of("history_measured")
    assert (events, 0 <= oldest < 600) == (5, True)
    assert {cause: number for cause, number in received.of("events_pruned") if number} == {}


def test_pruning_publishes_the_number_of_removed_events_by_cause(database, received):
    chain(database, key(1), 10)
    database.recorder.order()
    set_age(database, 4, 3)
    set_age(database, 2, 31)
    with opened(database.url, history=HistorySettings(max_events=7)) as bounded:
        assert bounded.recorder.prune() == 3
    assert received.of("events_pruned") == [("retention_days", 2), ("max_events", 1)]
    [(events, oldest)] = received.of("history_measured")
    assert (events, round(oldest / 86400)) == (7, 3)


def test_a_history_with_only_its_newest_event_is_measured(database, received, monkeypatch):
    monkeypatch.setattr(pruning, "BATCH", 2)
    chain(database, key(1), 5)
    database.recorder.order()
    set_age(database, 5, 40)
    database.recorder.prune()
    assert [(number, round(age / 86400)) for number, age in received.of("history_measured")] == [
        (3, 40),
        (1, 40),
        (1, 40),
    ]


def test_waiting_and_refused_requests_are_published(received):
    watch = EventWatch(lambda: (0, ""))
    assert watch.enter()
    assert not watch.enter()
    watch.leave()
    assert received.of("waiting_changed") == [(1,), (0,)]
    assert received.of("wait_refused") == [()]


def test_the_waiting_time_of_a_request_is_published(received):
    watch = EventWatch(lambda: (7, ""))
    assert watch.wait(6, time.monotonic() + PATIENCE)
    assert not watch.wait(7, time.monotonic())
    assert [name for name, _ in received.of("timing")] == ["wait", "wait"]
