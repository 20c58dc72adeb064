"""Rules of POST /v1/claims that take effect only with a concurrent writer or a condition of the call."""

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

#: Consumers that hold resources before the call.
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
    return [result["error"]["code"].rpartition(".")[2] for result in answer.body["results"] if result["status"] != 200]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_refusals_of_an_all_or_nothing_call_state_which_requests_do_not_fit(cloud):
    cloud.host("a", VCPU=2)
    entries = [request(f"resources=VCPU:{amount}") for amount in (1, 9, 1)]
    assert codes(cloud.claim(*entries, all_or_nothing=True)) == ["nothing_placed", "no_room", "nothing_placed"]


@pytest.mark.parametrize("order", ["held first", "refused first"])
@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_an_all_or_nothing_call_with_a_refusal_refuses_all_in_any_order(cloud, order):
    """This includes a consumer that already holds its place from an earlier call; it keeps the place."""
    cloud.host("a", VCPU=8)
    holder, other = request(), request()
    assert cloud.claim(holder, other).status == 200
    entries = [holder, other | {"query": "resources=VCPU:2"}]
    answer = cloud.claim(*(entries if order == "held first" else entries[::-1]), all_or_nothing=True)
    assert (answer.status, answer.body["claimed"]) == (409, 0)
    assert sorted(codes(answer)) == ["held_otherwise", "nothing_placed"]
    assert cloud("GET", f"/v1/claims/{holder['consumer']}").status == 200


@pytest.mark.every_database
@several_writers
def test_no_request_is_refused_before_a_search_that_follows_the_last_lost_place(cloud, elsewhere):
    """Once another client has moved, the second request fits where the first does not."""
    first, second = cloud.host("a", VCPU=4), cloud.host("b", VCPU=4)
    put(cloud, second, 4, HOLDER)

    def move():
        assert elsewhere("DELETE", f"/allocations/{HOLDER}").status == 204
        put(elsewhere, first, 1)

    with just_before(cloud.database, locking, move):
        results = cloud.claim(request("resources=VCPU:4"), request("resources=VCPU:3")).body["results"]
    assert [result["status"] for result in results] == [200, 200]
    assert list(map(roots_of, results)) == [{second}, {first}]


@pytest.mark.every_database
@several_writers
def test_an_all_or_nothing_call_of_any_size_is_one_transaction(cloud, elsewhere, monkeypatch):
    monkeypatch.setattr(engine, "BATCH", 1)
    host = cloud.host("a", VCPU=2)
    with just_before(cloud.database, locking, lambda: put(elsewhere, host, 1)):
        refused = cloud.claim(request(), request(), all_or_nothing=True)
    assert refused.status == 409
    assert [cloud.count(table) for table in (allocations, claims)] == [1, 0]


@pytest.mark.every_database
@several_writers
def test_consumers_that_must_be_together_lose_their_tree_together(cloud, elsewhere):
    """One of the consumers would still fit there."""
    first, second = cloud.host("a", VCPU=2), cloud.host("b", VCPU=8)
    put(cloud, second, 2)  # so that the first host is preferred
    entries = [request(), request()]
    with just_before(cloud.database, locking, lambda: put(elsewhere, first, 1)):
        results = cloud.claim(*entries, together_with=[entry["consumer"] for entry in entries]).body["results"]
    assert [roots_of(result) for result in results] == [{second}, {second}]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("order", [1, -1])
def test_resources_that_a_moved_consumer_releases_are_free_for_another_of_the_call(cloud, order):
    """The resources are free once the move is committed."""
    here, there = cloud.host("a", VCPU=1), cloud.host("b", VCPU=1)
    put(cloud, here, 1, HOLDER)
    moving = request("resources=VCPU:1", HOLDER, keep=False, consumer_generation=1)
    coming = request(f"resources=VCPU:1&in_tree={here}")
    results = cloud.claim(*[moving, coming][::order], apart_from=[HOLDER]).body["results"][::order]
    assert [result["outcome"] for result in results] == ["moved", "claimed"]
    assert list(map(roots_of, results)) == [{there}, {here}]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_dry_run_takes_the_usage_of_its_own_moves_into_account(cloud):
    """So does the call itself: its later transactions see the earlier ones."""
    here, there = cloud.host("a", VCPU=1), cloud.host("b", VCPU=2)
    put(cloud, here, 1, HOLDER)
    moving = request("resources=VCPU:1", HOLDER, keep=False, consumer_generation=1)
    coming = [request(f"resources=VCPU:1&in_tree={place}") for place in (here, there)]
    document = {"requests": [moving, *coming]}
    tried = cloud("POST", "/v1/claims?dry_run=true", {**document, "apart_from": [HOLDER]}).body
    results = tried["dry_run"]["body"]["results"]
    assert [result["outcome"] for result in results] == ["moved", "claimed", "refused"]
    assert list(map(roots_of, results[:2])) == [{there}, {here}]
    assert results[2]["error"]["code"] == "placement.v1.no_room"
    assert {uuid: room["VCPU"]["used"] for uuid, room in tried["room"].items()} == {here: 1, there: 1}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_listed_consumer_is_apart_from_consumers_of_the_call_that_were_placed_earlier(cloud):
    """A call that was carried out in part is repeated."""
    here, there = cloud.host("a", VCPU=8), cloud.host("b", VCPU=1)
    first, apart = request(f"resources=VCPU:1&in_tree={here}"), request()
    assert cloud.claim(first).status == 200
    second_call = {"requests": [first, apart], "apart_from": [apart["consumer"]]}
    results = cloud("POST", "/v1/claims", second_call).body["results"]
    assert [result["outcome"] for result in results] == ["held", "claimed"]
    assert roots_of(results[1]) == {there}
    cloud("DELETE", f"/v1/claims?consumer={apart['consumer']}")
    put(cloud, there, 1, HOLDER)
    assert codes(cloud("POST", "/v1/claims", second_call)) == ["no_room"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_consumers_that_share_only_a_sharing_provider_are_not_together(cloud):
    """The tree of the sharing provider does not count as a tree on which they hold resources."""
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
def test_together_with_every_listed_consumer_that_holds_resources(cloud):
    """Listed consumers that hold nothing do not count."""
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
def test_a_repeated_request_is_identified_by_every_field_of_its_holding(cloud, name):
    for host in "abc":
        cloud.host(host, VCPU=1)
    entry = request()
    assert cloud.claim(entry).body["results"][0]["outcome"] == "claimed"
    assert codes(cloud.claim({**entry, **CHANGES[name]})) == ["held_otherwise"]
    kept_entry = {**entry, "count": 1, "keep": True, "query": {"groups": {"": {"resources": {"VCPU": 1}}}}}
    assert cloud.claim(kept_entry, expires_in=9, strategy="pack").body["results"][0]["outcome"] == "held"


def gather(cloud, provider, aggregate, traits=()):
    for page, more in (("aggregates", {"aggregates": [aggregate]}), ("traits", {"traits": [*traits]})):
        path = f"/resource_providers/{provider}"
        generation = cloud("GET", path).body["generation"]
        assert cloud("PUT", f"{path}/{page}", {"resource_provider_generation": generation, **more}).status == 200


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_index_is_not_older_than_the_holding_of_a_consumer_to_be_moved(cloud, elsewhere, monkeypatch):
    """Another client moves the consumer before its holding is read; the search must see that its old host is free."""
    source, target = cloud.host("a", VCPU=4), cloud.host("b", VCPU=4)
    put(cloud, source, 4, HOLDER)
    there = request(f"resources=VCPU:4&in_tree={target}", HOLDER, keep=False, consumer_generation=1)
    back = request(f"resources=VCPU:4&in_tree={source}", HOLDER, keep=False, consumer_generation=2)
    read = engine.held_claims

    def move_first(db, consumers):
        monkeypatch.setattr(engine, "held_claims", read)
        assert elsewhere.claim(there).body["results"][0]["outcome"] == "moved"
        return read(db, consumers)

    monkeypatch.setattr(engine, "held_claims", move_first)
    [result] = cloud.claim(back).body["results"]
    assert engine.held_claims == read
    assert (result["outcome"], roots_of(result)) == ("moved", {source})


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_index_is_not_older_than_the_holdings_of_listed_consumers(cloud, elsewhere, monkeypatch):
    """Another client adds a provider to the preferred tree before the holdings are read, and claims there."""
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
def test_a_request_without_remaining_operations_is_undecided_and_can_be_repeated(cloud, monkeypatch):
    hosts = [hard_host(cloud, name) for name in "ab"]
    monkeypatch.setattr(allowance, "OPERATIONS_PER_REQUEST", 1)
    monkeypatch.setattr(allowance, "OPERATIONS_PER_PLACE", 0)
    # More operations than the search needs in one tree, but fewer than in both.
    monkeypatch.setattr(Settings, "from_conf", lambda _conf: Settings(operations=450))
    first, second = [request(f"{HARD}&in_tree_0={host}") for host in hosts]
    [placed, undecided] = cloud.claim(first, second).body["results"]
    assert (placed["outcome"], undecided["status"], undecided["outcome"]) == ("claimed", 409, "refused")
    assert undecided["error"]["code"] == "placement.v1.undecided"
    assert "explanation" not in undecided
    assert [result["outcome"] for result in cloud.claim(second).body["results"]] == ["claimed"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_all_searches_and_explanations_of_a_call_share_one_allowance(cloud, monkeypatch):
    cloud.host("a", VCPU=4)
    monkeypatch.setattr(allowance, "_RESERVED", 500)
    monkeypatch.setattr(Settings, "from_conf", lambda _conf: Settings(operations=2_000))
    spent, spend = [], Budget.spend

    def count(budget, operations):
        spent.append(operations)
        spend(budget, operations)

    monkeypatch.setattr(Budget, "spend", count)
    refused = [request(f"resources=VCPU:{5 + number}") for number in range(200)]
    answer = cloud.claim(request("resources=VCPU:1"), *refused)
    assert answer.body["claimed"] == 1
    assert {*codes(answer)} == {"undecided"}
    # The last step of each search may exceed its budget.
    assert sum(spent) < 2_000 + 500
    assert {*codes(cloud.claim(*refused[:20]))} == {"no_room"}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_no_explanation_follows_one_that_used_all_operations_of_the_call(cloud, monkeypatch):
    cloud.host("a", VCPU=1)
    explain = reasons.explain
    monkeypatch.setattr(reasons, "explain", lambda *arguments: replace(explain(*arguments), operations=10**9))
    results = cloud.claim(request("resources=VCPU:2"), request("resources=VCPU:3")).body["results"]
    assert [result["error"]["code"] for result in results] == ["placement.v1.no_room"] * 2
    assert ["explanation" in result for result in results] == [True, False]


#: Amounts that fill two devices completely, in only one of hundreds of ways to divide them.
AMOUNTS, DEVICES = (160, 239, 133, 194, 221, 248), (814, 381)
HARD = "group_policy=none&" + "&".join(f"resources_{number}=VGPU:{amount}" for number, amount in enumerate(AMOUNTS))


def hard_host(cloud, name):
    """Create a host where the search for ``HARD`` takes hundreds of operations."""
    root = cloud.host(name, VCPU=1)
    for number, amount in enumerate(DEVICES):
        child_of(cloud, root, f"{name}{number}", VGPU=amount)
    return root


def child_of(cloud, parent, name, **inventories):
    """Create a provider below another provider, and return its uuid."""
    child = cloud.host(name, **inventories)
    body = {"name": name, "parent_provider_uuid": parent}
    assert cloud("PUT", f"/resource_providers/{child}", body).status == 200
    return child
