"""What POST /v1/claims makes of consumers whose leases are over."""

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
def over(cloud):
    """A request whose consumer has held all of a host, until its time was over."""
    cloud.host("h", VCPU=2)
    asked = request("resources=VCPU:2")
    assert cloud.claim(asked, expires_in=3600).body["claimed"] == 1
    lease.expire(cloud.database, asked["consumer"])
    return asked


def outcomes(reply):
    return [(one["status"], one["outcome"]) for one in reply.body["results"]]


def test_the_same_request_is_placed_anew(cloud, over):
    again = cloud.claim(over)
    assert outcomes(again) == [(200, "claimed")]
    assert again.body["results"][0]["expires_at"] is None
    assert cloud.count(claims) == 1
    assert lease_sweep.sweep(cloud.database)
    assert cloud("GET", f"/v1/claims/{over['consumer']}").status == 200


def test_the_room_of_many_goes_to_a_claim_for_all_of_it(database, monkeypatch):
    """Each search gives back a part of what is due."""
    monkeypatch.setattr(release, "BATCH", 1)
    monkeypatch.setattr(live, "SWEEP_TIME_LIMIT", 0)
    cloud = Cloud(database)
    cloud.host("many", PGPU=12)
    held = [request("resources=PGPU:1") for _ in range(12)]
    assert cloud.claim(*held, expires_in=3600).body["claimed"] == 12
    for each in held:
        lease.expire(cloud.database, each["consumer"])
    assert outcomes(cloud.claim(request("resources=PGPU:12"))) == [(200, "claimed")]


def test_it_is_placed_anew_where_the_time_ends_after_the_search(cloud, over, monkeypatch):
    """The search does not notice, so the transaction does."""
    cloud.host("other", VCPU=2)
    monkeypatch.setattr(lease_sweep.LeaseSweeper, "sweep", lambda _: False)
    again = cloud.claim(over)
    assert outcomes(again) == [(200, "claimed")]
    assert cloud.count(claims) == 1
    assert not cloud.database.read(leases.any_expired)


def test_it_cannot_be_moved_and_keeps_nobody_away(cloud, over):
    moved = cloud.claim({**over, "keep": False, "consumer_generation": 1})
    assert outcomes(moved) == [(409, "refused")]
    assert moved.body["results"][0]["error"]["code"] == "placement.concurrent_update"
    beside = cloud.claim(request("resources=VCPU:2"), apart_from=[over["consumer"]])
    assert outcomes(beside) == [(200, "claimed")]
    with_it = cloud.claim(request("resources=VCPU:2"), together_with=[over["consumer"]])
    assert outcomes(with_it) == [(409, "refused")]


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_it_is_not_moved_once_its_time_is_over_for_readers(cloud):
    """Its time ends after the claim has read its row, and before the claim has locked it."""
    cloud.host("h", VCPU=2)
    asked = request("resources=VCPU:2")
    assert cloud.claim(asked, expires_in=3600).body["claimed"] == 1
    move = {**asked, "query": "resources=VCPU:1", "keep": False, "consumer_generation": 1}
    with opened(cloud.database.url) as elsewhere:
        over = functools.partial(lease.expire, elsewhere, asked["consumer"])
        with interleaving.just_before(cloud.database, interleaving.holding_consumers, over):
            moved = cloud.claim(move, expires_in=3600)
    assert outcomes(moved) == [(409, "refused")]
    assert cloud("GET", f"/v1/claims/{asked['consumer']}").status == 404
    assert cloud.count(claims) == 0


def test_its_end_is_nobodys_request(cloud, over):
    """A request of another project gives it back."""
    assert outcomes(cloud.claim(request("resources=VCPU:2", project_id="another"))) == [(200, "claimed")]
    [end] = [one for one in event_rows.following(cloud.database) if one.changes.get("reason") == [None, "expired"]]
    assert (end.uuid, end.request) == (over["consumer"], {"api": "placement", "route": "leases"})


@pytest.mark.parametrize("dry", ["", "&dry_run=true"], ids=["released", "tried"])
def test_its_release_finds_nothing_and_gives_it_back_as_expired(cloud, over, dry):
    assert cloud("GET", f"/v1/claims/{over['consumer']}").status == 404
    answer = cloud("DELETE", f"/v1/claims?consumer={over['consumer']}{dry}").body
    shown = answer["dry_run"]["body"] if dry else answer
    assert shown == {"released": [], "missing": [over["consumer"]], "complete": True}
    assert cloud.count(claims) == (1 if dry else 0)
    if not dry:
        newest = cloud("GET", f"/v1/events?consumer={over['consumer']}").body["events"][-1]
        assert newest["changes"]["reason"] == [None, "expired"]


def test_an_extension_counts_from_the_attempt_that_is_committed(cloud, monkeypatch):
    """The new end is over before the reply is read, as where the database was stalled: nothing ends unanswered."""
    cloud.host("h", VCPU=2)
    asked, extend, calls = request("resources=VCPU:2"), leases.extend, []
    assert cloud.claim(asked).body["claimed"] == 1

    def stalled_once(db, consumer, seconds):
        calls.append(seconds)
        extend(db, consumer, seconds if len(calls) > 1 else -1)

    monkeypatch.setattr(leases, "extend", stalled_once)
    extended = cloud("POST", f"/v1/claims/{asked['consumer']}/extend", {"expires_in": 3600})
    assert (extended.status, calls) == (200, [3600, 3600])
    assert cloud("GET", f"/v1/claims/{asked['consumer']}").body["expires_at"] == extended.body["expires_at"]
