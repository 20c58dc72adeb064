"""Rules of POST /v1/claims that show only where another writer, or a condition of the call, interferes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placement.db.schema.tables import allocations, claims
from placement.extensions.v1.claims import engine, reasons
from placement.extensions.v1.claims.conditions import Conditions
from placement.extensions.v1.pick import allowance
from placement.search.budget import Budget
from placement.search.find import Settings
from tests.db.extensions.v1.test_claims import Cloud, request, roots_of
from tests.db.extensions.v1.test_claims_at_once import put, several_writers
from tests.db.interleaving import just_before, locking
from tests.made import opened

#: A consumer that holds something before the call.
HOLDER, OTHER = "b9f4f3a2-6a51-4a58-8c0e-6d8f6a3a0b01", "b9f4f3a2-6a51-4a58-8c0e-6d8f6a3a0b02"


@pytest.fixture
def cloud(database):
    return Cloud(database)


@pytest.fixture
def elsewhere(database):
    """Another process."""
    with opened(database.url) as other:
        yield Cloud(other)


def codes(answer):
    return [one["error"]["code"].rpartition(".")[2] for one in answer.body["results"] if one["status"] != 200]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_refusals_of_a_call_for_all_say_which_requests_have_no_room(cloud):
    cloud.host("a", VCPU=2)
    asked = [request(f"resources=VCPU:{amount}") for amount in (1, 9, 1)]
    assert codes(cloud.claim(*asked, all_or_nothing=True)) == ["nothing_placed", "no_room", "nothing_placed"]


@pytest.mark.parametrize("order", ["held first", "refused first"])
@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_call_for_all_with_a_refusal_refuses_all_in_any_order(cloud, order):
    """Also for a consumer that holds what it asks for since an earlier call, and keeps it."""
    cloud.host("a", VCPU=8)
    held, other = request(), request()
    assert cloud.claim(held, other).status == 200
    asked = [held, other | {"query": "resources=VCPU:2"}]
    answer = cloud.claim(*(asked if order == "held first" else asked[::-1]), all_or_nothing=True)
    assert (answer.status, answer.body["claimed"]) == (409, 0)
    assert sorted(codes(answer)) == ["held_otherwise", "nothing_placed"]
    assert cloud("GET", f"/v1/claims/{held['consumer']}").status == 200


@pytest.mark.every_database
@several_writers
def test_who_has_no_room_is_refused_by_an_index_that_was_read_after_the_last_place_was_lost(cloud, elsewhere):
    """The second request has room where the first one has none, once another client has moved."""
    first, second = cloud.host("a", VCPU=4), cloud.host("b", VCPU=4)
    put(cloud, second, 4, HOLDER)

    def move():
        assert elsewhere("DELETE", f"/allocations/{HOLDER}").status == 204
        put(elsewhere, first, 1)

    with just_before(cloud.database, locking, move):
        results = cloud.claim(request("resources=VCPU:4"), request("resources=VCPU:3")).body["results"]
    assert [one["status"] for one in results] == [200, 200]
    assert list(map(roots_of, results)) == [{second}, {first}]


@pytest.mark.every_database
@several_writers
def test_a_call_for_all_is_one_transaction_of_any_size(cloud, elsewhere, monkeypatch):
    monkeypatch.setattr(engine, "BATCH", 1)
    host = cloud.host("a", VCPU=2)
    with just_before(cloud.database, locking, lambda: put(elsewhere, host, 1)):
        refused = cloud.claim(request(), request(), all_or_nothing=True)
    assert refused.status == 409
    assert [cloud.count(table) for table in (allocations, claims)] == [1, 0]


@pytest.mark.every_database
@several_writers
def test_consumers_that_are_to_be_together_lose_their_tree_together(cloud, elsewhere):
    """One of them would still have room there."""
    first, second = cloud.host("a", VCPU=2), cloud.host("b", VCPU=8)
    put(cloud, second, 2)  # so that the first one is preferred
    asked = [request(), request()]
    with just_before(cloud.database, locking, lambda: put(elsewhere, first, 1)):
        results = cloud.claim(*asked, together_with=[one["consumer"] for one in asked]).body["results"]
    assert [roots_of(one) for one in results] == [{second}, {second}]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("order", [1, -1])
def test_a_place_that_a_consumer_of_the_call_leaves_is_room_for_another_one(cloud, order):
    """Once the move is committed."""
    here, there = cloud.host("a", VCPU=1), cloud.host("b", VCPU=1)
    put(cloud, here, 1, HOLDER)
    moving = request("resources=VCPU:1", HOLDER, keep=False, consumer_generation=1)
    coming = request(f"resources=VCPU:1&in_tree={here}")
    results = cloud.claim(*[moving, coming][::order], apart_from=[HOLDER]).body["results"][::order]
    assert [one["outcome"] for one in results] == ["moved", "claimed"]
    assert list(map(roots_of, results)) == [{there}, {here}]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_dry_run_sees_what_its_moves_leave_and_what_they_take(cloud):
    """As the call itself, of which later transactions see what earlier ones did."""
    here, there = cloud.host("a", VCPU=1), cloud.host("b", VCPU=2)
    put(cloud, here, 1, HOLDER)
    moving = request("resources=VCPU:1", HOLDER, keep=False, consumer_generation=1)
    coming = [request(f"resources=VCPU:1&in_tree={place}") for place in (here, there)]
    document = {"requests": [moving, *coming]}
    tried = cloud("POST", "/v1/claims?dry_run=true", {**document, "apart_from": [HOLDER]}).body
    results = tried["dry_run"]["body"]["results"]
    assert [one["outcome"] for one in results] == ["moved", "claimed", "refused"]
    assert list(map(roots_of, results[:2])) == [{there}, {here}]
    assert results[2]["error"]["code"] == "placement.v1.no_room"
    assert {uuid: room["VCPU"]["used"] for uuid, room in tried["room"].items()} == {here: 1, there: 1}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_one_that_is_apart_from_the_others_of_a_call_is_apart_from_those_placed_before(cloud):
    """A call that was done in part is sent again."""
    here, there = cloud.host("a", VCPU=8), cloud.host("b", VCPU=1)
    first, apart = request(f"resources=VCPU:1&in_tree={here}"), request()
    assert cloud.claim(first).status == 200
    again = {"requests": [first, apart], "apart_from": [apart["consumer"]]}
    results = cloud("POST", "/v1/claims", again).body["results"]
    assert [one["outcome"] for one in results] == ["held", "claimed"]
    assert roots_of(results[1]) == {there}
    cloud("DELETE", f"/v1/claims?consumer={apart['consumer']}")
    put(cloud, there, 1, HOLDER)
    assert codes(cloud("POST", "/v1/claims", again)) == ["no_room"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_consumers_are_not_together_for_what_they_borrow_from_the_same_pool(cloud):
    """Its tree is not one in which they hold something."""
    pool, aggregate = cloud.host("pool", DISK_GB=9), "b9f4f3a2-6a51-4a58-8c0e-6d8f6a3a0b03"
    gather(cloud, pool, aggregate, traits=["MISC_SHARES_VIA_AGGREGATE"])
    for name, consumer in (("a", HOLDER), ("b", OTHER)):
        gather(cloud, cloud.host(name, VCPU=1), aggregate)
        assert cloud.claim(request("resources=VCPU:1,DISK_GB:1", consumer)).body["claimed"] == 1
    gather(cloud, cloud.host("c", VCPU=1), aggregate)
    disk = "resources=DISK_GB:1"
    assert codes(cloud.claim(request(disk), together_with=[HOLDER, OTHER])) == ["no_room"]
    assert cloud.claim(request(disk), together_with=[HOLDER]).body["claimed"] == 1
    assert roots_of(
        cloud.claim(request("resources=VCPU:1,DISK_GB:1"), apart_from=[HOLDER, OTHER]).body["results"][0]
    ) > {pool}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_together_with_each_of_those_that_hold_something(cloud):
    """Those that hold nothing do not count."""
    here, there = cloud.host("a", VCPU=9), cloud.host("b", VCPU=9)
    put(cloud, here, 1, HOLDER)
    for _ in range(3):
        assert roots_of(cloud.claim(request(), together_with=[HOLDER, OTHER]).body["results"][0]) == {here}
    put(cloud, there, 1, OTHER)
    assert codes(cloud.claim(request(), together_with=[HOLDER, OTHER])) == ["no_room"]


CHANGES = {
    "query": {"query": "resources=VCPU:1&in_tree=a"},
    "count": {"count": 2},
    "project_id": {"project_id": "other"},
    "user_id": {"user_id": "other"},
    "consumer_type": {"consumer_type": "OTHER"},
    "keep": {"keep": False, "consumer_generation": None},
}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", CHANGES)
def test_a_repeated_request_is_known_by_all_that_the_consumer_would_hold(cloud, name):
    for host in "abc":
        cloud.host(host, VCPU=1)
    asked = request()
    assert cloud.claim(asked).body["results"][0]["outcome"] == "claimed"
    assert codes(cloud.claim({**asked, **CHANGES[name]})) == ["held_otherwise"]
    again = {**asked, "count": 1, "keep": True, "query": {"groups": {"": {"resources": {"VCPU": 1}}}}}
    assert cloud.claim(again, expires_in=9, strategy="pack").body["results"][0]["outcome"] == "held"


def gather(cloud, provider, aggregate, traits=()):
    for page, more in (("aggregates", {"aggregates": [aggregate]}), ("traits", {"traits": [*traits]})):
        path = f"/resource_providers/{provider}"
        generation = cloud("GET", path).body["generation"]
        assert cloud("PUT", f"{path}/{page}", {"resource_provider_generation": generation, **more}).status == 200


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_index_is_not_older_than_what_a_consumer_to_be_moved_was_seen_to_hold(cloud, elsewhere, monkeypatch):
    """Another client moves it between the two: the room that it leaves is there, and is not taken for lost."""
    left, entered = cloud.host("a", VCPU=4), cloud.host("b", VCPU=4)
    put(cloud, left, 4, HOLDER)
    there = request(f"resources=VCPU:4&in_tree={entered}", HOLDER, keep=False, consumer_generation=1)
    back = request(f"resources=VCPU:4&in_tree={left}", HOLDER, keep=False, consumer_generation=2)
    read = engine.held_claims

    def move_first(db, consumers):
        monkeypatch.setattr(engine, "held_claims", read)
        assert elsewhere.claim(there).body["results"][0]["outcome"] == "moved"
        return read(db, consumers)

    monkeypatch.setattr(engine, "held_claims", move_first)
    [result] = cloud.claim(back).body["results"]
    assert engine.held_claims == read
    assert (result["outcome"], roots_of(result)) == ("moved", {left})


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_index_is_not_older_than_the_places_that_a_call_keeps_away_from(cloud, elsewhere, monkeypatch):
    """Another client adds a provider to the preferred tree between the two, and puts the listed consumer there."""
    preferred, other = cloud.host("a", VCPU=4), cloud.host("b", VCPU=4)
    put(cloud, other, 1)
    read, added = Conditions.read, []

    def add_first(conditions, db):
        if not added:
            added.append(child_of(elsewhere, preferred, "c", VCPU=4))
            put(elsewhere, added[0], 1, HOLDER)
        read(conditions, db)

    monkeypatch.setattr(Conditions, "read", add_first)
    [result] = cloud.claim(request(), apart_from=[HOLDER]).body["results"]
    assert added
    assert (result["outcome"], roots_of(result)) == ("claimed", {other})


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_request_for_which_others_have_left_no_operations_is_not_decided_and_placed_when_it_is_sent_again(
    cloud, monkeypatch
):
    hosts = [hard_host(cloud, name) for name in "ab"]
    monkeypatch.setattr(allowance, "OPERATIONS_PER_REQUEST", 1)
    monkeypatch.setattr(allowance, "OPERATIONS_PER_PLACE", 0)
    # More than the search takes in one tree, and less than in both.
    monkeypatch.setattr(Settings, "of", lambda _conf: Settings(operations=450))
    first, second = [request(f"{HARD}&in_tree_0={host}") for host in hosts]
    [placed, undecided] = cloud.claim(first, second).body["results"]
    assert (placed["outcome"], undecided["status"], undecided["outcome"]) == ("claimed", 409, "refused")
    assert undecided["error"]["code"] == "placement.v1.undecided"
    assert "explanation" not in undecided
    assert [one["outcome"] for one in cloud.claim(second).body["results"]] == ["claimed"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_all_searches_of_a_call_and_its_explanations_have_one_allowance(cloud, monkeypatch):
    """Also those of a second round, which there is because a place was taken."""
    cloud.host("a", VCPU=4)
    monkeypatch.setattr(allowance, "_RESERVED", 500)
    monkeypatch.setattr(Settings, "of", lambda _conf: Settings(operations=2_000))
    spent, spend = [], Budget.spend

    def counted(budget, operations):
        spent.append(operations)
        spend(budget, operations)

    monkeypatch.setattr(Budget, "spend", counted)
    refused = [request(f"resources=VCPU:{5 + number}") for number in range(200)]
    answer = cloud.claim(request("resources=VCPU:1"), *refused)
    assert answer.body["claimed"] == 1
    assert {*codes(answer)} == {"undecided"}
    # The last operations of each search may be more than it has.
    assert sum(spent) < 2_000 + 500
    assert {*codes(cloud.claim(*refused[:20]))} == {"no_room"}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_an_explanation_that_takes_all_operations_of_a_call_is_the_last_one(cloud, monkeypatch):
    cloud.host("a", VCPU=1)
    explain = reasons.explain
    monkeypatch.setattr(reasons, "explain", lambda *given: replace(explain(*given), operations=10**9))
    results = cloud.claim(request("resources=VCPU:2"), request("resources=VCPU:3")).body["results"]
    assert [one["error"]["code"] for one in results] == ["placement.v1.no_room"] * 2
    assert ["explanation" in one for one in results] == [True, False]


#: Amounts that fill up two devices, in one of hundreds of ways to divide them.
AMOUNTS, DEVICES = (160, 239, 133, 194, 221, 248), (814, 381)
HARD = "group_policy=none&" + "&".join(f"resources_{number}=VGPU:{amount}" for number, amount in enumerate(AMOUNTS))


def hard_host(cloud, name):
    """Create a host where the search for ``HARD`` takes hundreds of operations."""
    root = cloud.host(name, VCPU=1)
    for number, amount in enumerate(DEVICES):
        child_of(cloud, root, f"{name}{number}", VGPU=amount)
    return root


def child_of(cloud, parent, name, **inventories):
    """Create a provider below another one, and return its uuid."""
    child = cloud.host(name, **inventories)
    body = {"name": name, "parent_provider_uuid": parent}
    assert cloud("PUT", f"/resource_providers/{child}", body).status == 200
    return child
