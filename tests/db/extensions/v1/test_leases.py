"""POST /v1/claims and consumers whose leases have expired."""

from __future__ import annotations

import functools

import pytest

from placement.db.schema.tables import claims
from placement.index import live
from placement.objects.claims import lease_sweep, leases, release
from tests.db import interleaving, lease
from tests.db.extensions import event_rows
from tests.db.extensions.v1.test_claims import Cloud, request
from tests.made import opened

pytestmark = pytest.mark.every_database


@pytest.fixture
def cloud(database):
    return Cloud(database)


@pytest.fixture
def expired_request(cloud):
    """Return a request whose consumer held a whole host until its lease expired."""
    cloud.host("h", VCPU=2)
    entry = request("resources=VCPU:2")
    assert cloud.claim(entry, expires_in=3600).body["claimed"] == 1
    lease.expire(cloud.database, entry["consumer"])
    return entry


def outcomes(reply):
    return [(result["status"], result["outcome"]) for result in reply.body["results"]]


def test_an_equal_request_is_placed_again(cloud, expired_request):
    repeated = cloud.claim(expired_request)
    assert outcomes(repeated) == [(200, "claimed")]
    assert repeated.body["results"][0]["expires_at"] is None
    assert cloud.count(claims) == 1
    assert lease_sweep.sweep(cloud.database)
    assert cloud("GET", f"/v1/claims/{expired_request['consumer']}").status == 200


def test_a_claim_can_use_the_resources_of_many_expired_leases(database, monkeypatch):
    """Each search releases some of the expired leases."""
    monkeypatch.setattr(release, "BATCH", 1)
    monkeypatch.setattr(live, "SWEEP_TIME_LIMIT", 0)
    cloud = Cloud(database)
    cloud.host("many", PGPU=12)
    entries = [request("resources=PGPU:1") for _ in range(12)]
    assert cloud.claim(*entries, expires_in=3600).body["claimed"] == 12
    for entry in entries:
        lease.expire(cloud.database, entry["consumer"])
    assert outcomes(cloud.claim(request("resources=PGPU:12"))) == [(200, "claimed")]


def test_an_equal_request_is_placed_again_if_the_lease_expires_after_the_search(cloud, expired_request, monkeypatch):
    """The search does not notice the expiry, but the transaction does."""
    cloud.host("other", VCPU=2)
    monkeypatch.setattr(lease_sweep.LeaseSweeper, "sweep", lambda _: False)
    repeated = cloud.claim(expired_request)
    assert outcomes(repeated) == [(200, "claimed")]
    assert cloud.count(claims) == 1
    assert not cloud.database.read(leases.any_expired)


def test_an_expired_consumer_cannot_be_moved_and_meets_no_condition(cloud, expired_request):
    moved = cloud.claim({**expired_request, "keep": False, "consumer_generation": 1})
    assert outcomes(moved) == [(409, "refused")]
    assert moved.body["results"][0]["error"]["code"] == "placement.concurrent_update"
    beside = cloud.claim(request("resources=VCPU:2"), apart_from=[expired_request["consumer"]])
    assert outcomes(beside) == [(200, "claimed")]
    with_it = cloud.claim(request("resources=VCPU:2"), together_with=[expired_request["consumer"]])
    assert outcomes(with_it) == [(409, "refused")]


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_consumer_is_not_moved_if_its_lease_expires_before_it_is_locked(cloud):
    """The lease expires after the claim has read the row."""
    cloud.host("h", VCPU=2)
    entry = request("resources=VCPU:2")
    assert cloud.claim(entry, expires_in=3600).body["claimed"] == 1
    move = {**entry, "query": "resources=VCPU:1", "keep": False, "consumer_generation": 1}
    with opened(cloud.database.url) as elsewhere:
        expire = functools.partial(lease.expire, elsewhere, entry["consumer"])
        with interleaving.just_before(cloud.database, interleaving.holding_consumers, expire):
            moved = cloud.claim(move, expires_in=3600)
    assert outcomes(moved) == [(409, "refused")]
    assert cloud("GET", f"/v1/claims/{entry['consumer']}").status == 404
    assert cloud.count(claims) == 0


def test_the_event_of_an_expiry_has_no_author(cloud, expired_request):
    """The request of another project releases the lease, and must not appear as its author."""
    assert outcomes(cloud.claim(request("resources=VCPU:2", project_id="another"))) == [(200, "claimed")]
    [expiry] = [
        event for event in event_rows.following(cloud.database) if event.changes.get("reason") == [None, "expired"]
    ]
    assert (expiry.uuid, expiry.request) == (expired_request["consumer"], {"api": "placement", "route": "leases"})


@pytest.mark.parametrize("dry", ["", "&dry_run=true"], ids=["released", "tried"])
def test_a_release_reports_an_expired_consumer_as_missing_and_records_the_expiry(cloud, expired_request, dry):
    assert cloud("GET", f"/v1/claims/{expired_request['consumer']}").status == 404
    answer = cloud("DELETE", f"/v1/claims?consumer={expired_request['consumer']}{dry}").body
    result = answer["dry_run"]["body"] if dry else answer
    assert result == {"released": [], "missing": [expired_request["consumer"]], "complete": True}
    assert cloud.count(claims) == (1 if dry else 0)
    if not dry:
        newest = cloud("GET", f"/v1/events?consumer={expired_request['consumer']}").body["events"][-1]
        assert newest["changes"]["reason"] == [None, "expired"]


def test_an_extension_counts_from_the_attempt_that_is_committed(cloud, monkeypatch):
    """The first new expiry passes before the lease is read, as if the database stalled; the next attempt succeeds."""
    cloud.host("h", VCPU=2)
    entry, extend, calls = request("resources=VCPU:2"), leases.extend, []
    assert cloud.claim(entry).body["claimed"] == 1

    def stalled_once(db, consumer, seconds):
        calls.append(seconds)
        extend(db, consumer, seconds if len(calls) > 1 else -1)

    monkeypatch.setattr(leases, "extend", stalled_once)
    extended = cloud("POST", f"/v1/claims/{entry['consumer']}/extend", {"expires_in": 3600})
    assert (extended.status, calls) == (200, [3600, 3600])
    assert cloud("GET", f"/v1/claims/{entry['consumer']}").body["expires_at"] == extended.body["expires_at"]
