"""POST /v1/claims: places are chosen and claimed in one call (docs: v1-claims)."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from placement.db.tables import allocations, claims, consumers
from tests.db.in_process import placement


class Cloud:
    """A service on a database, with hosts of one class."""

    def __init__(self, database):
        self.database = database
        self.call = placement(database)

    def host(self, name, **inventories):
        """Create a root provider, and return its uuid."""
        created = str(uuid.uuid4())
        assert self("POST", "/resource_providers", {"name": name, "uuid": created}).status == 200
        body = {"inventories": {key: {"total": total} for key, total in inventories.items()}}
        path = f"/resource_providers/{created}/inventories"
        assert self("PUT", path, {"resource_provider_generation": 0, **body}).status == 200
        return created

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


def test_a_consumer_gets_a_place(cloud):
    host = cloud.host("h", VCPU=4)
    asked = request("resources=VCPU:2")
    reply = cloud.claim(asked)
    assert reply.status == 200, reply.body
    [result] = reply.body["results"]
    assert result == {
        "consumer": asked["consumer"],
        "status": 200,
        "outcome": "claimed",
        "allocations": {host: {"resources": {"VCPU": 2}, "generation": 2}},
        "mappings": [{"": [host]}],
        "consumer_generation": 1,
        "expires_at": None,
    }
    held = cloud("GET", f"/allocations/{asked['consumer']}").body
    assert held["allocations"] == result["allocations"]
    shown = cloud("GET", f"/v1/claims/{asked['consumer']}").body
    assert shown["allocations"] == result["allocations"]
    assert shown["mappings"] == result["mappings"]


def test_a_repeated_call_answers_what_is_held(cloud):
    cloud.host("h", VCPU=1)
    asked = request()
    first = cloud.claim(asked).body["results"][0]
    again = cloud.claim(asked).body["results"][0]
    assert again == {**first, "outcome": "held"}
    other = cloud.claim({**asked, "query": "resources=VCPU:2"})
    assert other.status == 409
    assert other.body["errors"][0]["code"] == "placement.v1.held_otherwise"


def test_what_does_not_fit_is_refused_and_leaves_nothing(cloud):
    cloud.host("h", VCPU=3)
    asked = [request() for _ in range(5)]
    reply = cloud.claim(*asked)
    assert [one["status"] for one in reply.body["results"]] == [200] * 3 + [409] * 2
    refused = reply.body["results"][3]
    assert refused["error"]["code"] == "placement.v1.no_room"
    assert refused["explanation"]["obstacle"] == {"rule": "resources", "group": ""}
    assert [cloud.count(table) for table in (consumers, allocations, claims)] == [3, 3, 3]
    assert cloud.claim(request()).status == 409


def test_all_or_nothing(cloud):
    cloud.host("h", VCPU=3)
    asked = [request() for _ in range(5)]
    reply = cloud.claim(*asked, all_or_nothing=True)
    assert [one["status"] for one in reply.body["results"]] == [409] * 5
    assert [cloud.count(table) for table in (consumers, allocations, claims)] == [0, 0, 0]
    assert cloud.claim(*asked[:3], all_or_nothing=True).body["claimed"] == 3
