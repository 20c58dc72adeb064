"""The number of statements of POST /v1/claims: each takes a round trip, and together they take most of its time.

Each COMMIT counts, including the one after the index is refreshed.  Statements that begin a transaction do not count.
"""

from __future__ import annotations

import uuid

import pytest

from placement.extensions.v1.claims import engine, shared
from tests.db.extensions.v1.writes import claims, request
from tests.db.faults import Plan, plant
from tests.db.in_process import placement
from tests.db.scenarios import Names
from tests.db.writes import HOST, stock

#: Statements that refresh the index after a claim: its position in the feed, the changes, the usage, COMMIT.
REFRESH = 4
#: Statements of a claim: the consumer with its names, its row, the lock of its provider, the inventories, the
#: generation, the allocations, the record, the feed with the events, COMMIT.
CLAIM = 9


@pytest.fixture
def service(database):
    return placement(database)


@pytest.fixture
def budget(event_inserts):
    return CLAIM + event_inserts


@pytest.fixture(autouse=True)
def _no_snapshot_is_too_old(monkeypatch):
    """On a slow machine, the snapshot would be too old for an optimistic claim, and the index would be refreshed."""
    monkeypatch.setattr(shared, "SNAPSHOT_AGE", 3600)


@pytest.fixture
def names(service):
    names = Names()
    for call in HOST:
        assert service(*names.fill(call)).status == 200
    # A provider whose name is its uuid may belong to a node, so the node would be read.
    assert service("PUT", names.fill_text("/resource_providers/$host"), 39, {"name": "host"}).status == 200
    return names


def place_claim(service, **more):
    owner = {"consumer_type": "INSTANCE", "project_id": "project", "user_id": "user"}
    request = {"consumer": str(uuid.uuid4()), **owner, "query": "resources=VCPU:1,MEMORY_MB:64,DISK_GB:5", **more}
    answer = service("POST", "/v1/claims", body={"requests": [request]})
    assert answer.status == 200, answer
    return answer


def test_a_claim_after_another_claim_stays_within_the_statement_budget(database, service, names, budget):
    for _ in range(2):  # from the second claim on, the index expects changes
        place_claim(service)
    plan = Plan()
    plant(database, plan)
    place_claim(service)
    statements = plan.statements_without_begin
    assert len(statements) <= REFRESH + budget, "\n".join(statements)


def test_an_optimistic_claim_needs_no_refresh(database, service, names, budget):
    place_claim(service)
    assert service("GET", "/v1/overview").status == 200
    plan = Plan()
    plant(database, plan)
    place_claim(service)
    statements = plan.statements_without_begin
    assert len(statements) <= budget, "\n".join(statements)


def test_many_consumers_need_hardly_more_statements_than_a_single_consumer(database, service, names):
    """Each statement reads, locks or inserts the rows of all consumers."""
    roomy = stock("host", 1, VCPU=2000, MEMORY_MB=1024, DISK_GB=100)
    assert service(*names.fill(roomy)).status == 200
    entries = [request(f"consumer_{number}") for number in range(400)]
    for pair in (entries[:2], entries[2:4]):
        assert service(*names.fill(claims(*pair))).status == 200
    plan = Plan()
    plant(database, plan)
    assert service(*names.fill(claims(*entries[4:]))).body["claimed"] == 396
    statements = plan.statements_without_begin
    # One more statement reads the ids of the consumers' rows; another inserts the events, unless they are few.
    assert len(statements) <= REFRESH + CLAIM + 2, "\n".join(statements)


@pytest.mark.parametrize("new", [0, 4])
@pytest.mark.parametrize("alike", [True, False], ids=["equal queries", "different queries"])
def test_a_repeated_call_reads_the_holdings_of_its_consumers_once(database, service, names, monkeypatch, alike, new):
    """Little capacity is free, so each search finds places for few of the consumers that already hold resources."""
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
    plant(database, plan)
    assert outcomes(service(*names.fill(claims(*entries)))) == ["held"] * 40 + ["claimed"] * new
    # The first transaction is refused after its first statement; one more statement reads the holdings.
    statements_for_new = 2 * (CLAIM + 2) + REFRESH if new else 1
    assert len(plan.statements_without_begin) <= REFRESH + 2 + statements_for_new, "\n".join(
        plan.statements_without_begin
    )


def outcomes(answer):
    return [result["outcome"] for result in answer.body["results"]]
