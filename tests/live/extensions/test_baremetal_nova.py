"""Machines as nova's driver for bare metal uses them: claimed by the Placement API, deployed by the Bare Metal API.

The provider of a node has the node's uuid, one unit of the node's class and its traits; the consumer is the instance.
"""

from __future__ import annotations

import uuid

import pytest
from keystoneauth1 import adapter, session, token_endpoint

from tests.baremetal_clients import DRIVER, unique
from tests.children import PATIENCE

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the SDK itself

UNIT = {"total": 1, "min_unit": 1, "max_unit": 1, "step_size": 1, "allocation_ratio": 1.0}


class Placement:
    """The Placement API of the same service, used like nova's clients."""

    def __init__(self, url):
        auth = token_endpoint.Token(url, "admin")
        self._client = adapter.Adapter(
            session.Session(auth=auth), service_type="placement", default_microversion="1.39", raise_exc=False
        )

    def send(self, method, path, **body):
        reply = self._client.request(path, method, **({"json": body} if body else {}))
        return reply.status_code, reply.json() if reply.content else None

    def get(self, path):
        status, document = self.send("GET", path)
        assert status == 200, document
        return document

    def candidates(self, amounts, traits=""):
        """Return the uuids of the providers that fit."""
        required = f"&required={traits}" if traits else ""
        document = self.get(f"/allocation_candidates?resources={amounts}{required}")
        return [provider for request in document["allocation_requests"] for provider in request["allocations"]]

    def claim(self, consumer, provider, name, generation=None):
        """Claim for a consumer, and return the status of the response."""
        return self.send(
            "PUT",
            f"/allocations/{consumer}",
            allocations={provider: {"resources": {name: 1}}},
            project_id="demo",
            user_id="alice",
            consumer_generation=generation,
            consumer_type="INSTANCE",
        )[0]

    def inventory(self, provider):
        return self.get(f"/resource_providers/{provider}/inventories")["inventories"]


@pytest.fixture
def placement(clients):
    if clients.root is None:
        pytest.skip("the service has no Placement API")
    return Placement(clients.root)


@pytest.fixture
def baremetal(clients):
    return clients.baremetal


def resource_class():
    """Return a class of nodes, and its name in Placement."""
    word = unique("baremetal.with-GPU")
    return word, "CUSTOM_" + word.upper().replace(".", "_").replace("-", "_")


def test_an_instance_is_claimed_deployed_and_undeployed(clients, placement, baremetal):
    kind, name = resource_class()
    node = clients.available_node(kind, ("CUSTOM_FAST", "HW_CPU_X86_AVX2"))
    clients.available_node(kind)
    instance = str(uuid.uuid4())
    assert placement.candidates(f"{name}:1", "CUSTOM_FAST,HW_CPU_X86_AVX2") == [node.id]
    assert placement.claim(instance, node.id, name) == 204
    claimed_node = baremetal.get_node(node.id)
    assert (claimed_node.instance_id, claimed_node.allocation_id) == (instance, None)

    # The driver associates them, although the node already has the instance.
    baremetal.patch_node(node.id, [{"op": "add", "path": "/instance_uuid", "value": instance}])
    baremetal.update_node(node, instance_info={"image_source": "http://192.0.2.1/image"})
    node = baremetal.set_node_provision_state(node, "active", wait=True, timeout=PATIENCE)
    assert (node.provision_state, node.instance_id) == ("active", instance)
    assert [listed_node.id for listed_node in baremetal.nodes(instance_id=instance)] == [node.id]
    assert placement.inventory(node.id)[name]["reserved"] == 1
    claim = placement.get(f"/allocations/{instance}")
    assert claim["allocations"][node.id]["resources"] == {name: 1}
    assert (claim["project_id"], claim["user_id"], claim["consumer_type"]) == ("demo", "alice", "INSTANCE")
    assert placement.candidates(f"{name}:1", "CUSTOM_FAST") == []

    node = baremetal.set_node_provision_state(node, "deleted", wait=True, timeout=PATIENCE)
    assert (node.provision_state, baremetal.get_node(node.id).instance_id) == ("available", None)
    assert placement.send("DELETE", f"/allocations/{instance}")[0] in (204, 404)
    assert placement.inventory(node.id)[name]["reserved"] == 0
    assert placement.candidates(f"{name}:1", "CUSTOM_FAST") == [node.id]
    assert clients.active_allocation(kind, traits=["CUSTOM_FAST"]).node_id == node.id


def test_a_node_allocated_by_one_api_is_not_allocated_by_the_other(clients, placement, baremetal):
    kind, name = resource_class()
    node = clients.available_node(kind)
    instance = str(uuid.uuid4())
    assert placement.claim(instance, node.id, name) == 204
    failed = baremetal.wait_for_allocation(baremetal.create_allocation(resource_class=kind), ignore_error=True)
    assert failed.state == "error"
    with pytest.raises(Exception, match=instance):
        baremetal.update_node(node.id, instance_id=str(uuid.uuid4()))
    assert placement.send("DELETE", f"/allocations/{instance}")[0] == 204
    assert baremetal.get_node(node.id).instance_id is None

    lease = clients.active_allocation(kind)
    assert placement.candidates(f"{name}:1") == []
    assert placement.claim(instance, node.id, name) == 409
    allocations = placement.get(f"/allocations/{lease.id}")
    assert allocations["allocations"][node.id]["resources"] == {name: 1}
    baremetal.delete_allocation(lease, ignore_missing=False)
    assert placement.get(f"/allocations/{lease.id}") == {"allocations": {}}
    assert placement.claim(instance, node.id, name) == 204


def test_a_lease_ends_with_the_deletion_of_its_allocations_in_placement(clients, placement, baremetal):
    kind, _ = resource_class()
    node = clients.available_node(kind)
    lease = clients.active_allocation(kind, name=unique("job"))
    assert placement.send("DELETE", f"/allocations/{lease.id}")[0] == 204
    assert "could not be found" in clients.openstack.error_of(f"allocation show {lease.name}")
    assert list(baremetal.allocations(resource_class=kind)) == []
    freed_node = baremetal.get_node(node.id)
    assert (freed_node.instance_id, freed_node.allocation_id) == (None, None)
    next_lease = clients.active_allocation(kind, name=lease.name)
    assert next_lease.node_id == node.id


def test_a_node_can_be_created_for_a_provider_of_nova(clients, placement, baremetal):
    kind, name = resource_class()
    node, instance = str(uuid.uuid4()), str(uuid.uuid4())
    assert placement.send("POST", "/resource_providers", uuid=node, name=node)[0] == 200
    assert placement.send("PUT", f"/resource_classes/{name}")[0] == 201
    assert placement.send("PUT", "/traits/CUSTOM_FAST")[0] in (201, 204)
    unit = {"resource_provider_generation": 0, "inventories": {name: UNIT}}
    assert placement.send("PUT", f"/resource_providers/{node}/inventories", **unit)[0] == 200
    traits = {"resource_provider_generation": 1, "traits": ["CUSTOM_FAST"]}
    assert placement.send("PUT", f"/resource_providers/{node}/traits", **traits)[0] == 200
    assert placement.claim(instance, node, name) == 204

    created = baremetal.create_node(driver=DRIVER, id=node, resource_class=kind)
    assert (created.id, created.instance_id, created.traits) == (node, instance, ["CUSTOM_FAST"])
    assert placement.get(f"/resource_providers/{node}")["name"] == node
    assert placement.inventory(node)[name] == UNIT | {"reserved": 1}


def test_the_periodic_update_of_nova_changes_nothing(clients, placement, baremetal):
    """The update writes the inventory and traits derived from the node; afterwards both APIs work as before."""
    kind, name = resource_class()
    node = clients.available_node(kind, ("CUSTOM_FAST",))
    assert placement.inventory(node.id) == {name: UNIT | {"reserved": 0}}
    document = placement.get(f"/resource_providers/{node.id}/traits")
    assert document["traits"] == ["CUSTOM_FAST"]
    unit = {"resource_provider_generation": document["resource_provider_generation"], "inventories": {name: UNIT}}
    status, inventories = placement.send("PUT", f"/resource_providers/{node.id}/inventories", **unit)
    assert status == 200
    traits = {"traits": ["CUSTOM_FAST"], "resource_provider_generation": inventories["resource_provider_generation"]}
    assert placement.send("PUT", f"/resource_providers/{node.id}/traits", **traits)[0] == 200
    lease = clients.active_allocation(kind, traits=["CUSTOM_FAST"])
    assert lease.node_id == node.id
    baremetal.set_node_maintenance(node, "a fan is loud")
    assert placement.inventory(node.id)[name]["reserved"] == 1
    baremetal.unset_node_maintenance(node)
    baremetal.delete_allocation(lease)
    assert placement.inventory(node.id)[name]["reserved"] == 0
    assert placement.candidates(f"{name}:1") == [node.id]
