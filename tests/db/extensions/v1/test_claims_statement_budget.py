"""The number of statements of POST /v1/claims, which take a round trip each, and most of its time.

COMMIT counts, also that of the transaction in which the index is read.  What begins a transaction does not.
"""

from __future__ import annotations

import uuid

import pytest

from placement.extensions.v1.claims import engine, shared
from tests.db.extensions.v1.writes import claims, request
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.db.scenarios import Names
from tests.db.writes import HOST, stock

#: The index is read with what was claimed before: its position in the feed, what changed, the usage, COMMIT.
REFRESH = 4
#: The consumer with its names, its row, the lock of its provider, the inventories, the generation, the allocations, the
#: record, the feed with the events, COMMIT.
CLAIM = 9


@pytest.fixture
def service(database):
    return placement(database)


@pytest.fixture
def budget(own_insert):
    return CLAIM + own_insert


@pytest.fixture(autouse=True)
def _no_snapshot_is_too_old(monkeypatch):
    """On a slow machine the snapshot would be too old for an optimistic claim, so the index would be read again."""
    monkeypatch.setattr(shared, "SNAPSHOT_AGE", 3600)


@pytest.fixture
def names(service):
    names = Names()
    for call in HOST:
        assert service(*names.fill(call)).status == 200
    # One with the name that it has may be a machine, whose node is read.
    assert service("PUT", names.filled("/resource_providers/$host"), 39, {"name": "host"}).status == 200
    return names


def claimed(service, **more):
    owner = {"consumer_type": "INSTANCE", "project_id": "project", "user_id": "user"}
    request = {"consumer": str(uuid.uuid4()), **owner, "query": "resources=VCPU:1,MEMORY_MB:64,DISK_GB:5", **more}
    answer = service("POST", "/v1/claims", body={"requests": [request]})
    assert answer.status == 200, answer
    return answer


def test_a_place_for_a_new_consumer(database, service, names, budget):
    for _ in range(2):  # from the second one on, the index expects changes
        claimed(service)
    plan = Plan()
    planted(database, plan)
    claimed(service)
    statements = plan.counted
    assert len(statements) <= REFRESH + budget, "\n".join(statements)


def test_a_place_that_the_index_has_shown_a_moment_ago(database, service, names, budget):
    claimed(service)
    assert service("GET", "/v1/overview").status == 200
    plan = Plan()
    planted(database, plan)
    claimed(service)
    statements = plan.counted
    assert len(statements) <= budget, "\n".join(statements)


def test_many_consumers_take_hardly_more_than_one(database, service, names):
    """Rows are read, locked and inserted by statements for all of them."""
    roomy = stock("host", 1, VCPU=2000, MEMORY_MB=1024, DISK_GB=100)
    assert service(*names.fill(roomy)).status == 200
    entries = [request(f"consumer_{number}") for number in range(400)]
    for several in (entries[:2], entries[2:4]):
        assert service(*names.fill(claims(*several))).status == 200
    plan = Plan()
    planted(database, plan)
    assert service(*names.fill(claims(*entries[4:]))).body["claimed"] == 396
    statements = plan.counted
    # One more for the ids of the consumers' rows, and one because many events have an INSERT of their own everywhere.
    assert len(statements) <= REFRESH + CLAIM + 2, "\n".join(statements)


@pytest.mark.parametrize("new", [0, 4])
@pytest.mark.parametrize("alike", [True, False], ids=["equal queries", "different queries"])
def test_a_repeated_call_reads_once_what_its_consumers_hold(database, service, names, monkeypatch, alike, new):
    """Little room is left, so each search finds places for few of the consumers that hold something already."""
    monkeypatch.setattr(engine, "BATCH", 3)
    roomy = stock("host", 1, VCPU=44, MEMORY_MB=4096, DISK_GB=100)
    assert service(*names.fill(roomy)).status == 200
    query = "resources=VCPU:1,MEMORY_MB:{}&in_tree=$host"
    entries = [
        request(f"consumer_{number}") | {"query": query.format(1 if alike else 1 + number)}
        for number in range(40 + new)
    ]
    assert outcomes(service(*names.fill(claims(*entries[:40])))) == ["claimed"] * 40
    plan = Plan()
    planted(database, plan)
    assert outcomes(service(*names.fill(claims(*entries)))) == ["held"] * 40 + ["claimed"] * new
    # The first transaction is refused after its first statement; one more reads what is held.
    claimed_then = 2 * (CLAIM + 2) + REFRESH if new else 1
    assert len(plan.counted) <= REFRESH + 2 + claimed_then, "\n".join(plan.counted)


def outcomes(answer):
    return [one["outcome"] for one in answer.body["results"]]
