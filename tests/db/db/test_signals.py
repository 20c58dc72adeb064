"""The signals published by requests: causes, counts, and the time of each statement."""

from __future__ import annotations

import threading
import uuid

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.schema.tables import inventories, projects, resource_providers
from placement.db.writes.transaction import Collision
from placement.index.live import LiveIndex
from tests.clock import PATIENCE
from tests.db.in_process import placement
from tests.load.storm import holding


def create_host(service, total=4):
    provider = str(uuid.uuid4())
    assert service("POST", "/resource_providers", 39, {"uuid": provider, "name": provider}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total}}}
    assert service("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
    return provider


def test_a_search_publishes_its_outcome_and_obstacle(database, received):
    service = placement(database)
    for _ in range(3):
        create_host(service)

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


def test_the_index_publishes_missed_changes_and_the_reason_for_a_full_read(database, received):
    service, live_index = placement(database), LiveIndex(database, verify_interval=0)

    def refresh():
        received.clear()
        live_index.current()
        [(seconds, missed, providers)] = received.of("refreshed")
        assert 0 < seconds < PATIENCE
        return [cause for (cause,) in received.of("reloaded")], missed, providers

    create_host(service)
    assert refresh() == (["start"], 0, 1)
    assert refresh() == ([], 0, 1)
    create_host(service)
    assert refresh() == ([], 2, 2)  # the provider, and its inventory
    # Usage of a provider that was deleted without a row in the feed
    deleted_id = database.read(lambda db: db.execute(sa.select(sa.func.max(resource_providers.c.id))).scalar())
    with database.engine.begin() as connection:
        connection.execute(sa.delete(inventories).where(inventories.c.resource_provider_id == deleted_id))
        connection.execute(sa.update(resource_providers).values(root_provider_id=None))
        connection.execute(sa.delete(resource_providers).where(resource_providers.c.id == deleted_id))
    database.write(lambda db: db.record_change(deleted_id, feed.USAGE))
    assert refresh() == (["out_of_step"], 1, 1)
    assert "index" in [name for name, _ in received.of("timing")]


def test_the_reload_of_an_index_that_differs_is_published(database, received, caplog):
    service, live_index = placement(database), LiveIndex(database, verify_interval=1e-9)
    create_host(service)
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
def test_a_deadlock_is_published_as_a_deadlock(database, received):
    service = placement(database)
    first_host, second_host = create_host(service), create_host(service)
    barrier = threading.Barrier(2)

    def lock(first, second):
        attempts = []

        def work(db):
            attempts.append(None)
            db.execute(sa.update(resource_providers).where(resource_providers.c.uuid == first).values(name=first))
            if len(attempts) == 1:
                barrier.wait(PATIENCE)  # each transaction holds one lock, and waits for the other
            db.execute(sa.update(resource_providers).where(resource_providers.c.uuid == second).values(name=second))

        database.write(work)

    received.clear()
    threads = [
        threading.Thread(target=lock, args=pair) for pair in [(first_host, second_host), (second_host, first_host)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The second attempt may collide, too.
    assert set(received.of("driver_error")) == {("deadlock",)}
    assert received.of("retried") == received.of("driver_error")


def test_each_statement_and_commit_is_timed_once_their_publication_is_enabled(database, received):
    service = placement(database)
    provider = create_host(service)
    service("PUT", f"/allocations/{uuid.uuid4()}", 39, holding([provider]))  # creates its project and user
    received.clear()
    claim = holding([provider])
    assert service("PUT", f"/allocations/{uuid.uuid4()}", 39, claim).status == 204
    assert [name for name, _ in received.of("timing")].count("sql") == 1  # COMMIT

    database.publish_statements()
    received.clear()
    assert service("PUT", f"/allocations/{uuid.uuid4()}", 39, claim).status == 204
    timings = received.of("timing")
    statements = [seconds for name, seconds in timings if name == "sql"]
    total = sum(seconds for name, seconds in timings if name == "database")
    # A claim is at most eight statements, COMMIT counted; SQLite has BEGIN, too.
    assert 6 <= len(statements) <= 9
    assert 0 < sum(statements) < total
    received.clear()
    with pytest.raises(sa.exc.SQLAlchemyError):
        database.read(lambda db: db.execute(sa.text("SELEKT 1")))
    assert [name for name, _ in received.of("timing")] == ["sql", "database"]
