"""POST /v1/claims with concurrent writers: the faster one gets a place, the other the next one (docs: v1-claims)."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import allocations, claims, consumers, resource_providers
from placement.extensions.v1.claims import engine
from tests.db import sql_hooks
from tests.db.extensions.v1.test_claims import Cloud, request, roots_of
from tests.db.interleaving import just_before, locking
from tests.made import opened

pytestmark = pytest.mark.every_database

#: SQLite has one writer at a time.
several_writers = pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)


@pytest.fixture
def cloud(database):
    return Cloud(database)


@pytest.fixture
def elsewhere(database):
    """Another process."""
    with opened(database.url) as other:
        yield Cloud(other)


def put(cloud, host, amount, consumer=None):
    body = {
        "allocations": {host: {"resources": {"VCPU": amount}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert cloud("PUT", f"/allocations/{consumer or uuid.uuid4()}", body).status == 204


@several_writers
def test_requests_whose_places_were_taken_get_the_next_ones(cloud, elsewhere):
    """The requests get the next places in the same call, as long as there is free capacity."""
    hosts = [cloud.host(name, VCPU=4) for name in "abcd"]
    entries = [request("resources=VCPU:1") for _ in range(9)]
    with just_before(cloud.database, locking, lambda: [put(elsewhere, host, 4) for host in hosts[:2]]):
        results = cloud.claim(*entries).body["results"]
    placed = [result for result in results if result["status"] == 200]
    assert len(placed) == 8
    assert set().union(*map(roots_of, placed)) == set(hosts[2:])
    assert {result["error"]["code"] for result in results if result not in placed} == {"placement.v1.no_room"}
    assert [cloud.count(table) for table in (consumers, allocations, claims)] == [10, 10, 8]


@several_writers
def test_a_request_whose_last_place_was_taken_is_refused(cloud, elsewhere):
    host = cloud.host("a", VCPU=1)
    with just_before(cloud.database, locking, lambda: put(elsewhere, host, 1)):
        refused = cloud.claim(request())
    assert refused.body["errors"][0]["code"] == "placement.v1.no_room"
    assert [cloud.count(table) for table in (consumers, allocations, claims)] == [1, 1, 0]


@several_writers
def test_an_all_or_nothing_call_whose_place_was_taken_claims_nothing(cloud, elsewhere):
    hosts = [cloud.host(name, VCPU=2) for name in "ab"]
    with just_before(cloud.database, locking, lambda: put(elsewhere, hosts[0], 1)):
        refused = cloud.claim(*[request() for _ in range(4)], all_or_nothing=True)
    assert {result["status"] for result in refused.body["results"]} == {409}
    assert [cloud.count(table) for table in (consumers, allocations, claims)] == [1, 1, 0]


@several_writers
def test_a_consumer_that_was_claimed_meanwhile_is_held(cloud, elsewhere):
    cloud.host("a", VCPU=4)
    entry = request()
    with just_before(cloud.database, "INSERT INTO consumers", lambda: elsewhere.claim(entry)):
        assert cloud.claim(entry).body["results"][0]["outcome"] == "held"
    entry = request()
    with just_before(cloud.database, "INSERT INTO consumers", lambda: elsewhere.claim({**entry, "user_id": "other"})):
        assert cloud.claim(entry).body["errors"][0]["code"] == "placement.v1.held_otherwise"


@several_writers
def test_places_are_apart_from_a_listed_consumer_that_is_placed_meanwhile(cloud, elsewhere):
    """The listed consumer is placed after places are chosen and before they are claimed; another one holds nothing."""
    hosts = [cloud.host(name, VCPU=4) for name in "ab"]
    listed = str(uuid.uuid4())
    with just_before(cloud.database, "INSERT INTO consumers", lambda: put(elsewhere, hosts[0], 1, listed)):
        results = cloud.claim(*[request() for _ in range(4)], apart_from=[listed, str(uuid.uuid4())]).body["results"]
    assert [roots_of(result) for result in results] == [{hosts[1]}] * 4


@several_writers
def test_places_of_a_later_round_are_apart_from_places_of_the_first(cloud, elsewhere):
    """The listed consumer loses its place; by then, only the tree of another consumer of the call has free capacity."""
    first, second = cloud.host("a", VCPU=4), cloud.host("b", VCPU=8)
    put(cloud, second, 1)  # so that the first host is preferred
    listed, other = request(), request(f"resources=VCPU:1&in_tree={second}")
    with just_before(cloud.database, locking, lambda: put(elsewhere, first, 4)):
        results = cloud.claim(listed, other, apart_from=[listed["consumer"]]).body["results"]
    assert [result["status"] for result in results] == [409, 200]


def test_a_host_that_was_filled_without_the_feed_is_not_chosen_again(cloud):
    """The index lacks that write; after a refusal, the other host is chosen."""
    full, free = cloud.host("a", VCPU=8), cloud.host("b", VCPU=1)
    assert cloud("GET", "/v1/overview").status == 200
    with cloud.database.engine.begin() as connection:
        provider_id = sa.select(resource_providers.c.id).where(resource_providers.c.uuid == full).scalar_subquery()
        row = {"consumer_id": str(uuid.uuid4()), "resource_class_id": 0, "used": 8}
        connection.execute(sa.insert(allocations).values(resource_provider_id=provider_id, **row))
    assert roots_of(cloud.claim(request("resources=VCPU:1"), strategy="spread").body["results"][0]) == {free}
    assert cloud.claim(request("resources=VCPU:1")).body["errors"][0]["code"] == "placement.v1.no_room"


def test_listed_consumers_of_different_batches_are_apart(cloud, monkeypatch):
    monkeypatch.setattr(engine, "BATCH", 2)
    hosts = {cloud.host(name, VCPU=9) for name in "abcde"}
    entries = [request() for _ in range(5)]
    results = cloud.claim(*entries, apart_from=[entry["consumer"] for entry in entries]).body["results"]
    assert set().union(*map(roots_of, results)) == hosts


@pytest.mark.usefixtures("patient_database")
@several_writers
def test_a_call_places_other_consumers_before_it_waits_for_a_locked_provider(cloud, elsewhere):
    """The lock is held until a transaction would wait for it, or until other consumers have their places."""
    hosts = [cloud.host(name, VCPU=4) for name in "ab"]
    #: Whether locked providers are skipped, by the number of placed consumers.
    skips = {}

    def release(statement):
        if "resource_providers" in statement and locking(statement):
            placed = cloud.count(claims)
            skips[placed] = "SKIP LOCKED" in statement
            if placed or not skips[placed]:
                connection.rollback()

    with elsewhere.database.engine.connect() as connection:
        row = sa.select(resource_providers.c.id).where(resource_providers.c.uuid == hosts[0])
        connection.execute(row.with_for_update()).one()
        with sql_hooks.statements(cloud.database.engine, release):
            results = cloud.claim(*[request() for _ in range(4)]).body["results"]
    assert [result["status"] for result in results] == [200] * 4
    assert set().union(*map(roots_of, results)) == set(hosts)
    assert skips == {0: True, 2: False}


def test_a_new_provider_with_the_id_of_a_deleted_one_is_not_mistaken_for_it(cloud, monkeypatch):
    """SQLite reuses the highest id."""
    host, deleted = cloud.host("a", VCPU=4), cloud.host("b", VCPU=4)
    written, write = [], engine.write

    def replace_first(*arguments, **options):
        if not written:
            assert cloud("DELETE", f"/resource_providers/{deleted}").status == 204
            written.append(cloud.host("c", VCPU=4))
        return write(*arguments, **options)

    monkeypatch.setattr(engine, "write", replace_first)
    results = cloud.claim(request(f"resources=VCPU:1&in_tree={deleted}"), request("resources=VCPU:3")).body["results"]
    assert written
    assert [result["status"] for result in results] == [409, 200]
    assert roots_of(results[1]) <= {host, *written}


def test_a_provider_that_was_deleted_and_created_again_is_chosen(cloud, monkeypatch):
    """The provider has a new id but the same generation, and must not be mistaken for the refused place."""
    host, _, written, write = cloud.host("a", VCPU=4), cloud.host("b", MEMORY_MB=4), [], engine.write

    def replace_first(*arguments, **options):
        if not written:
            assert cloud("DELETE", f"/resource_providers/{host}").status == 204
            written.append(cloud.host("a", host, VCPU=4))
        return write(*arguments, **options)

    monkeypatch.setattr(engine, "write", replace_first)
    [result] = cloud.claim(request(), strategy="pack").body["results"]
    assert written
    assert (result["outcome"], roots_of(result)) == ("claimed", {host})


def test_a_host_that_has_just_lost_a_required_trait_is_not_claimed(cloud, elsewhere):
    """The index of this process does not contain the change yet."""
    host = cloud.host("a", VCPU=4)
    path, trait = f"/resource_providers/{host}/traits", "HW_CPU_X86_AVX"
    body = {"resource_provider_generation": 1, "traits": [trait]}
    assert cloud("PUT", path, body).status == 200
    entry = request(f"resources=VCPU:1&required={trait}")
    assert cloud("GET", "/v1/overview").status == 200
    assert cloud.claim(entry).status == 200
    assert cloud("GET", "/v1/overview").status == 200
    assert elsewhere("PUT", path, {"resource_provider_generation": 3, "traits": []}).status == 200
    assert cloud.claim(request(entry["query"])).error["code"] == "placement.v1.no_room"


def test_a_host_and_a_class_that_were_just_created_are_known(cloud, elsewhere):
    assert cloud("GET", "/v1/overview").status == 200
    assert elsewhere("PUT", "/resource_classes/CUSTOM_NEW").status == 201
    host = elsewhere.host("a", CUSTOM_NEW=1)
    assert roots_of(cloud.claim(request("resources=CUSTOM_NEW:1")).body["results"][0]) == {host}


@pytest.mark.parametrize("all_or_nothing", [False, True])
def test_resources_that_the_consumer_releases_meanwhile_are_free(cloud, elsewhere, monkeypatch, all_or_nothing):
    """The consumer holds the host during the search, and nothing when its holding is read; the next round places it."""
    host, consumer, read = cloud.host("a", VCPU=4), str(uuid.uuid4()), engine.Claiming._holdings
    put(cloud, host, 4, consumer)
    releases = []

    def release_first(claiming, consumers):
        if not releases:
            releases.append(elsewhere("DELETE", f"/allocations/{consumer}").status)
        return read(claiming, consumers)

    monkeypatch.setattr(engine.Claiming, "_holdings", release_first)
    entry = {**request("resources=VCPU:3"), "consumer": consumer}
    [result] = cloud.claim(entry, all_or_nothing=all_or_nothing).body["results"]
    assert releases == [204]
    assert result["outcome"] == "claimed"
