"""POST /v1/claims: the service chooses places and claims them (docs: v1-claims)."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import allocations, claims, consumers, resource_providers
from tests import web
from tests.db.in_process import placement
from tests.reused_database import NOWHERE


class Cloud:
    """A service on a database, with hosts of one class."""

    def __init__(self, database):
        self.database = database
        self.call = placement(database)

    def host(self, name, host=None, /, **inventories):
        """Create a root provider, and return its uuid."""
        host = host or str(uuid.uuid4())
        assert self("POST", "/resource_providers", {"name": name, "uuid": host}).status == 200
        body = {"inventories": {key: {"total": total} for key, total in inventories.items()}}
        path = f"/resource_providers/{host}/inventories"
        assert self("PUT", path, {"resource_provider_generation": 0, **body}).status == 200
        return host

    def __call__(self, method, path, document=None):
        return self.call(method, path, body=document)

    def claim(self, *requests, **options):
        """POST /v1/claims."""
        return self("POST", "/v1/claims", {"requests": [*requests], **options})

    def count(self, table):
        """Return the number of rows."""
        with self.database.reading_engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar()


def request(query="resources=VCPU:1", consumer=None, **fields):
    """Return a request for a place."""
    return {
        "consumer": consumer or str(uuid.uuid4()),
        "consumer_type": "INSTANCE",
        "project_id": "p",
        "user_id": "u",
        "query": query,
        **fields,
    }


@pytest.fixture
def cloud(database):
    return Cloud(database)


def test_refused_requests_leave_no_rows(cloud):
    cloud.host("h", VCPU=3)
    requests = [request() for _ in range(5)]
    reply = cloud.claim(*requests)
    assert [result["status"] for result in reply.body["results"]] == [200] * 3 + [409] * 2
    refused = reply.body["results"][3]
    assert refused["error"]["code"] == "placement.v1.no_room"
    assert refused["explanation"]["obstacle"] == {"rule": "resources", "group": ""}
    assert [cloud.count(table) for table in (consumers, allocations, claims)] == [3, 3, 3]
    assert cloud.claim(request()).status == 409


def test_an_all_or_nothing_call_places_all_or_nothing(cloud):
    cloud.host("h", VCPU=3)
    requests = [request() for _ in range(5)]
    reply = cloud.claim(*requests, all_or_nothing=True)
    assert [result["status"] for result in reply.body["results"]] == [409] * 5
    assert [cloud.count(table) for table in (consumers, allocations, claims)] == [0, 0, 0]
    assert cloud.claim(*requests[:3], all_or_nothing=True).body["claimed"] == 3


def roots_of(result):
    """Return the uuids of the providers in a result."""
    return set(result["allocations"])


def test_copies_are_in_different_trees(cloud):
    hosts = {cloud.host(name, VCPU=2) for name in "abc"}
    entry = request("resources=VCPU:1", count=3)
    [result] = cloud.claim(entry).body["results"]
    assert roots_of(result) == hosts
    assert sorted(mapping[""][0] for mapping in result["mappings"]) == sorted(hosts)
    assert cloud.claim(request("resources=VCPU:1", count=4)).status == 409
    assert cloud.claim(entry).body["results"][0]["outcome"] == "held"


def test_a_consumer_is_moved(cloud):
    first, second = cloud.host("a", VCPU=4), cloud.host("b", VCPU=4)
    entry = request("resources=VCPU:3")
    [claimed] = cloud.claim(entry).body["results"]
    [old] = roots_of(claimed)
    move = {**entry, "keep": False, "consumer_generation": 1}
    [moved] = cloud.claim(move, apart_from=[entry["consumer"]]).body["results"]
    assert (moved["outcome"], moved["consumer_generation"]) == ("moved", 2)
    assert roots_of(moved) == {first, second} - {old}
    assert cloud.claim(move).body["results"][0]["outcome"] == "held"
    stale = cloud.claim({**move, "query": "resources=VCPU:2"})
    assert (stale.status, stale.body["errors"][0]["code"]) == (409, "placement.concurrent_update")
    # Its own amounts count as free: it grows in place, although the old and new amounts do not fit together.
    grown = {**entry, "query": f"resources=VCPU:4&in_tree={next(iter(roots_of(moved)))}", "keep": False}
    [result] = cloud.claim({**grown, "consumer_generation": 2}).body["results"]
    [allocation] = result["allocations"].values()
    assert (result["outcome"], allocation["resources"], allocation["generation"]) == ("moved", {"VCPU": 4}, 3)
    assert roots_of(result) == roots_of(moved)
    assert cloud.count(allocations) == 1


def test_a_move_requires_the_consumer_generation(cloud):
    assert cloud.claim(request(keep=False)).status == 400
    assert cloud.claim(request(consumer_generation=1)).status == 400
    unknown = cloud.claim(request(keep=False, consumer_generation=1))
    assert (unknown.status, unknown.body["errors"][0]["code"]) == (409, "placement.concurrent_update")


def test_a_dry_run_request_does_not_affect_others(cloud):
    host = cloud.host("h", VCPU=1)
    dry_run, real = request(dry_run=True), request()
    dry_run_result, claimed = cloud.claim(dry_run, real).body["results"]
    assert (dry_run_result["outcome"], roots_of(dry_run_result)) == ("found", {host})
    assert "consumer_generation" not in dry_run_result
    assert claimed["outcome"] == "claimed"
    assert cloud.count(consumers) == 1
    assert cloud.claim(dry_run).status == 409


def test_a_dry_run_of_a_call_writes_nothing(cloud):
    host = cloud.host("h", VCPU=1)
    document = {"requests": [request(), request()]}
    answer = cloud("POST", "/v1/claims?dry_run=true", document)
    assert answer.status == 200
    assert [result["status"] for result in answer.body["dry_run"]["body"]["results"]] == [200, 409]
    assert answer.body["room"] == {host: {"VCPU": {"capacity": 1, "used": 1, "free": 0}}}
    assert [cloud.count(table) for table in (consumers, allocations, claims)] == [0, 0, 0]
    document = {"requests": [request("resources=VCPU:9")]}
    assert cloud("POST", "/v1/claims?dry_run=true", document).body["dry_run"]["status"] == 409


def test_new_consumers_are_placed_apart_from_listed_consumers(cloud):
    hosts = {cloud.host(name, VCPU=9) for name in "abc"}
    [earlier] = cloud.claim(request()).body["results"]
    requests = [request() for _ in range(6)]
    results = cloud.claim(*requests, apart_from=[earlier["consumer"]]).body["results"]
    assert set().union(*map(roots_of, results)) == hosts - roots_of(earlier)
    # A listed consumer of the call is apart from all others; the others may share a tree.
    mixed = [request() for _ in range(5)]
    results = cloud.claim(*mixed, apart_from=[mixed[0]["consumer"]]).body["results"]
    assert [result["status"] for result in results] == [200] * 5
    assert not roots_of(results[0]) & set().union(*map(roots_of, results[1:]))
    mutual = [request() for _ in range(4)]
    results = cloud.claim(*mutual, apart_from=[entry["consumer"] for entry in mutual]).body["results"]
    assert sorted(result["status"] for result in results) == [200, 200, 200, 409]
    assert set().union(*map(roots_of, results[:3])) == hosts
    assert cloud.count(consumers) == 1 + 6 + 5 + 3


def test_apart_from_an_unknown_consumer_leaves_no_row(cloud):
    cloud.host("h", VCPU=9)
    assert cloud.claim(request(), apart_from=[str(uuid.uuid4())]).status == 200
    assert cloud.count(consumers) == 1


def test_new_consumers_are_placed_together_with_listed_consumers(cloud):
    for name in "abc":
        cloud.host(name, VCPU=4)
    [earlier] = cloud.claim(request()).body["results"]
    requests = [request() for _ in range(3)]
    results = cloud.claim(*requests, together_with=[earlier["consumer"]]).body["results"]
    assert [roots_of(result) for result in results] == [roots_of(earlier)] * 3
    assert cloud.claim(request(), together_with=[earlier["consumer"]]).status == 409
    assert cloud.claim(request(), together_with=[str(uuid.uuid4())]).status == 409
    joined = [request() for _ in range(4)]
    results = cloud.claim(*joined, together_with=[joined[0]["consumer"]]).body["results"]
    assert len({frozenset(roots_of(result)) for result in results}) == 1
    assert cloud.claim(*[request() for _ in range(5)], together_with=[str(uuid.uuid4())]).status == 409


def test_a_moved_claim_keeps_its_expiry_until_a_move_removes_it(cloud):
    cloud.host("h", VCPU=4)
    entry = request()
    [result] = cloud.claim(entry, expires_in=3600).body["results"]
    assert result["expires_at"] is not None
    assert cloud("GET", f"/v1/claims/{entry['consumer']}").body["expires_at"] == result["expires_at"]
    move = {**entry, "keep": False, "consumer_generation": 1}
    assert cloud.claim(move).body["results"][0]["expires_at"] == result["expires_at"]
    move = {**move, "consumer_generation": 2}
    assert cloud.claim(move, expires_in=None).body["results"][0]["expires_at"] is None
    history = cloud("GET", f"/v1/history/{entry['consumer']}").body["events"]
    changes = [event["changes"]["lease"] for event in history if "lease" in event["changes"]]
    assert changes == [[None, result["expires_at"]], [result["expires_at"], None]]


def test_claims_of_several_transactions_are_answered_in_order_and_placed_once(cloud):
    """A transaction places at most 500 consumers."""
    for number in range(30):
        cloud.host(f"h{number}", VCPU=40)
    entries = [request() for _ in range(1100)]
    results = cloud.claim(*entries).body["results"]
    assert [result["status"] for result in results] == [200] * 1100
    assert [result["consumer"] for result in results] == [entry["consumer"] for entry in entries]
    assert cloud.claim(*entries).body["results"][1099]["outcome"] == "held"
    assert [cloud.count(table) for table in (consumers, allocations, claims)] == [1100, 1100, 1100]


def test_the_size_of_a_call_is_bounded(cloud):
    max_size = web.configuration().placement.max_claims_per_request
    refused = cloud.claim(request(count=max_size), request())
    assert (refused.status, str(max_size + 1) in refused.error["detail"]) == (400, True)
    assert cloud.claim(request(), apart_from=[str(uuid.uuid4())] * max_size).status == 400


def test_the_first_ten_queries_are_explained(cloud):
    cloud.host("h", VCPU=1)
    results = cloud.claim(*[request(f"resources=VCPU:{2 + number // 2}") for number in range(24)]).body["results"]
    assert [number for number, result in enumerate(results) if "explanation" in result] == [*range(0, 20, 2)]


def test_inconsistent_rows_of_another_implementation_are_a_holding(cloud):
    """The provider, the project and the user have no rows; the claim is refused at once, without retries."""
    cloud.host("h", VCPU=1)
    consumer = str(uuid.uuid4())
    with cloud.database.engine.begin() as connection:
        row = {"resource_provider_id": NOWHERE, "resource_class_id": 0, "consumer_id": consumer, "used": 1}
        connection.execute(sa.insert(allocations).values(row))
        connection.execute(
            sa.insert(consumers).values(uuid=consumer, project_id=NOWHERE, user_id=NOWHERE, generation=7)
        )
    assert cloud.claim(request(consumer=consumer)).error["code"] == "placement.v1.held_otherwise"
    body = cloud("GET", f"/v1/claims/{consumer}").body
    assert (body["project_id"], body["allocations"], body["consumer_generation"]) == (None, {}, 7)
    [moved] = cloud.claim(request(consumer=consumer, keep=False, consumer_generation=7)).body["results"]
    assert (moved["outcome"], moved["consumer_generation"]) == ("moved", 8)


def test_a_new_claim_does_not_inherit_the_expiry_of_deleted_allocations(cloud):
    """Another implementation deleted the allocations and left the consumer's row."""
    cloud.host("h", VCPU=1)
    entry = request()
    cloud.claim(entry, expires_in=3600)
    with cloud.database.engine.begin() as connection:
        connection.execute(sa.delete(allocations))
        connection.execute(sa.update(resource_providers).values(generation=9))
    [result] = cloud.claim({**entry, "query": "resources=VCPU:1&required=!HW_CPU_X86_AVX"}).body["results"]
    assert (result["outcome"], result["expires_at"]) == ("claimed", None)
