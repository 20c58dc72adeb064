"""The service inside the process of its client: requests arrive, and responses return, unchanged."""

import uuid

import pytest
from keystoneauth1 import exceptions
from oslo_config import fixture as config_fixture
from oslo_context import context

from placement import microversion as mv
from placement.direct import PlacementDirect
from placement.testing import Database
from tests import web


@pytest.fixture
def conf():
    """A configuration for Keystone, which is never contacted, and a new database in memory."""
    conf = web.configuration(api__auth_strategy="keystone")
    with Database(config_fixture.Config(conf), set_config=True):
        yield conf


@pytest.fixture
def client(conf):
    with PlacementDirect(conf, latest_microversion=True) as client:
        yield client


@pytest.mark.parametrize(("latest", "version"), [(False, "placement 1.0"), (True, f"placement {mv.LATEST}")])
def test_requests_use_the_oldest_version_or_the_latest(conf, latest, version):
    with PlacementDirect(conf, latest_microversion=latest) as client:
        assert client.get("/resource_providers").headers["openstack-api-version"] == version


def test_a_request_may_name_its_version(client):
    assert client.post("/resource_providers", json={"name": "a"}, microversion="1.19").status_code == 201


def test_the_client_has_the_rights_of_an_administrator(conf):
    unknown_provider = {"inventories": {str(uuid.uuid4()): {}}, "allocations": {}}
    with PlacementDirect(conf, latest_microversion=True) as client:
        assert client.get("/resource_providers").status_code == 200
        assert client.post("/reshaper", json=unknown_provider).status_code == 403
    conf.set_override("enforce_new_defaults", False, group="oslo_policy")
    with PlacementDirect(conf, latest_microversion=True) as client:
        assert client.post("/reshaper", json=unknown_provider).status_code == 400


def test_the_configuration_is_unchanged(conf):
    with PlacementDirect(conf):
        assert conf.api.auth_strategy == "keystone"


def test_a_failure_is_a_response_and_not_an_exception(client):
    answer = client.get("/resource_providers/nobody")
    assert (answer.status_code, answer.reason) == (404, "Not Found")
    assert answer.json()["errors"][0]["request_id"] == answer.headers["x-openstack-request-id"]


def test_paths_queries_and_bodies_arrive_unchanged(client):
    name = "ä & b?c=d/é%41"
    created = client.post("/resource_providers", json={"name": name}).json()
    assert created["name"] == name
    providers = client.get("/resource_providers", params={"name": name}).json()["resource_providers"]
    assert [provider["uuid"] for provider in providers] == [created["uuid"]]
    assert "uuid ä ?% found" in client.get("/resource_providers/ä%20%3F%25").json()["errors"][0]["detail"]


def test_a_body_may_be_missing_and_may_come_in_pieces(client):
    assert client.put("/traits/CUSTOM_BARE").status_code == 201
    pieces = (piece for piece in (b'{"name": ', b'"CUSTOM_PIECEMEAL"}'))
    headers = {"content-type": "application/json"}
    assert client.post("/resource_classes", data=pieces, headers=headers).status_code == 201
    assert client.post("/resource_classes", data='{"name": "CUSTOM_TEXT"}', headers=headers).status_code == 201


def test_a_location_can_be_followed(client):
    location = client.post("/resource_providers", json={"name": "a"}).headers["location"]
    assert client.get(location).json()["name"] == "a"


def test_clients_of_one_database_see_the_writes_of_each_other(conf):
    query = "/allocation_candidates?resources=VCPU:1"
    with PlacementDirect(conf, True) as client, PlacementDirect(conf, True) as other_client:
        for number in range(3):
            writer, reader = (client, other_client) if number % 2 else (other_client, client)
            provider = writer.post("/resource_providers", json={"name": str(number)}).json()
            inventory = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1}}}
            assert writer.put(f"/resource_providers/{provider['uuid']}/inventories", json=inventory).status_code == 200
            assert len(reader.get(query).json()["allocation_requests"]) == number + 1


def test_requests_fail_after_the_end_of_the_block(conf):
    with PlacementDirect(conf) as client:
        pass
    with pytest.raises(exceptions.ConnectFailure, match="the service has been stopped"):
        client.get("/")


@pytest.mark.parametrize("mine", [None, "mine"])
def test_the_thread_keeps_the_request_context_of_its_owner(client, mine):
    own_context = mine and context.RequestContext(user_id=mine)
    if not mine:
        vars(context._request_store).clear()
    client.get("/resource_providers")
    assert context.get_current() is own_context
