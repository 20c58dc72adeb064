"""The Bare Metal API by openstacksdk: the methods of its proxy, each at the version that the SDK chooses."""

from __future__ import annotations

import uuid

import pytest

from tests.baremetal_clients import DRIVER, unique
from tests.children import PATIENCE

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the SDK itself


@pytest.fixture
def baremetal(clients):
    return clients.baremetal


@pytest.fixture
def exceptions(clients):
    from openstack import exceptions

    return exceptions


def test_the_sdk_creates_finds_and_deletes_a_node(baremetal, exceptions):
    name, kind = unique("web"), unique("compute.large")
    node = baremetal.create_node(
        driver=DRIVER, name=name, resource_class=kind, properties={"cpus": 4}, extra={"rack": "r7"}
    )
    assert (node.provision_state, node.power_state, node.is_maintenance) == ("enroll", None, False)
    assert (node.instance_id, node.allocation_id, node.owner) == (None, None, None)
    assert (node.properties, node.extra, node.traits) == ({"cpus": 4}, {"rack": "r7"}, [])
    assert baremetal.get_node(name).id == baremetal.get_node(node.id).id == node.id
    assert baremetal.get_node(name, fields=["uuid", "resource_class"]).resource_class == kind
    assert baremetal.find_node(name).id == node.id
    assert baremetal.find_node(unique("nobody")) is None
    with pytest.raises(exceptions.ConflictException, match=name):
        baremetal.create_node(driver=DRIVER, name=name)
    with pytest.raises(exceptions.BadRequestException, match="floppy"):
        baremetal.create_node(driver="floppy")

    baremetal.delete_node(name, ignore_missing=False)
    baremetal.delete_node(node.id)
    with pytest.raises(exceptions.NotFoundException, match=f"Node {node.id} could not be found"):
        baremetal.delete_node(node.id, ignore_missing=False)
    with pytest.raises(exceptions.NotFoundException, match=f"Node {node.id} could not be found"):
        baremetal.get_node(node.id)


def test_the_sdk_creates_a_node_in_a_later_state(baremetal, exceptions):
    """The SDK requests `available` at 1.10, the last version that creates such nodes, and manages others itself."""
    node = baremetal.create_node(driver=DRIVER, resource_class=unique("gpu"), provision_state="manageable")
    assert node.provision_state == "manageable"
    node = baremetal.create_node(driver=DRIVER, name=unique("web"), provision_state="available")
    assert (node.provision_state, baremetal.get_node(node.id).provision_state) == ("available", "available")
    with pytest.raises(exceptions.HttpException, match="406"):
        baremetal.create_node(driver=DRIVER, resource_class=unique("gpu"), provision_state="available")


def test_the_sdk_filters_lists_of_nodes(clients, baremetal):
    kind = unique("gpu")
    free = clients.available_node(kind, name=unique("web"), owner="lab")
    allocated = clients.available_node(kind, name=unique("web"))
    lease = clients.active_allocation(kind, candidate_nodes=[allocated.id])
    broken = clients.enrolled_node(kind, is_maintenance=True)

    def ids_listed(**filters):
        return {node.id for node in baremetal.nodes(resource_class=kind, **filters)}

    assert ids_listed() == {free.id, allocated.id, broken.id}
    assert ids_listed(provision_state="available", associated=False, is_maintenance=False) == {free.id}
    assert ids_listed(associated=True) == ids_listed(instance_id=lease.id) == {allocated.id}
    assert ids_listed(is_maintenance=True) == {broken.id}
    assert ids_listed(owner="lab", details=True) == {free.id}  # the SDK itself applies this filter
    assert ids_listed(driver=DRIVER, provision_state="enroll") == {broken.id}
    assert [node.id for node in baremetal.nodes(resource_class=kind, limit=2)] == [free.id, allocated.id, broken.id]

    details = {node.id: node for node in baremetal.nodes(details=True)}
    assert (details[allocated.id].resource_class, details[allocated.id].allocation_id) == (kind, lease.id)
    chosen = list(baremetal.nodes(resource_class=kind, fields=["uuid", "instance_uuid", "traits"]))
    assert {node.id: node.instance_id for node in chosen} == {free.id: None, allocated.id: lease.id, broken.id: None}
    assert chosen[0].resource_class is None


def test_the_sdk_updates_a_node(baremetal, exceptions):
    node = baremetal.create_node(driver=DRIVER, extra={"rack": "r7"})
    name, kind, instance = unique("web"), unique("gpu"), str(uuid.uuid4())
    node = baremetal.update_node(node, name=name, resource_class=kind, owner="lab", extra={"row": 3})
    assert (node.name, node.resource_class, node.owner, node.extra) == (name, kind, "lab", {"row": 3})
    node = baremetal.update_node(name, description="spare")
    assert (node.name, node.description) == (name, "spare")
    node = baremetal.patch_node(
        node,
        [
            {"op": "replace", "path": "/extra/row", "value": 4},
            {"op": "add", "path": "/properties/cpus", "value": 8},
            {"op": "remove", "path": "/owner"},
        ],
    )
    assert (node.extra, node.properties, node.owner) == ({"row": 4}, {"cpus": 8}, None)
    with pytest.raises(exceptions.BadRequestException):
        baremetal.patch_node(node, [{"op": "replace", "path": "/provision_state", "value": "active"}])

    assert baremetal.update_node(node, instance_id=instance).instance_id == instance
    assert baremetal.get_node(node.id).instance_id == instance
    assert baremetal.update_node(node, instance_id=None).instance_id is None


def test_the_sdk_changes_traits(baremetal, exceptions):
    node = baremetal.create_node(driver=DRIVER)
    baremetal.set_node_traits(node, ["CUSTOM_RACK_7", "HW_CPU_X86_AVX2"])
    baremetal.add_node_trait(node, "CUSTOM_GPU")
    assert set(baremetal.get_node(node.id).traits) == {"CUSTOM_RACK_7", "HW_CPU_X86_AVX2", "CUSTOM_GPU"}
    baremetal.remove_node_trait(node, "CUSTOM_RACK_7")
    assert set(baremetal.get_node(node.id).traits) == {"HW_CPU_X86_AVX2", "CUSTOM_GPU"}
    with pytest.raises(exceptions.NotFoundException):
        baremetal.remove_node_trait(node, "CUSTOM_RACK_7")
    with pytest.raises(exceptions.BadRequestException, match="bad-trait"):
        baremetal.set_node_traits(node, ["CUSTOM_A", "bad-trait"])
    assert set(baremetal.get_node(node.id).traits) == {"HW_CPU_X86_AVX2", "CUSTOM_GPU"}
    baremetal.set_node_traits(node, [])
    assert baremetal.get_node(node.id).traits == []


def test_the_sdk_changes_maintenance(baremetal):
    node = baremetal.create_node(driver=DRIVER)
    node = baremetal.set_node_maintenance(node, "a fan is loud")
    assert (node.is_maintenance, node.maintenance_reason) == (True, "a fan is loud")
    node = baremetal.unset_node_maintenance(node)
    assert (node.is_maintenance, node.maintenance_reason) == (False, None)
    assert baremetal.set_node_maintenance(node).maintenance_reason is None
    assert baremetal.update_node(node, is_maintenance=False).is_maintenance is False


def test_the_sdk_changes_states_and_power(baremetal, exceptions):
    node = baremetal.create_node(driver=DRIVER, resource_class=unique("gpu"))
    for target, state in (
        ("manage", "manageable"),
        ("provide", "available"),
        ("active", "active"),
        ("deleted", "available"),
    ):
        node = baremetal.set_node_provision_state(node, target, wait=True, timeout=PATIENCE)
        assert (node.provision_state, node.target_provision_state) == (state, None)
    with pytest.raises(exceptions.BadRequestException, match="available"):
        baremetal.set_node_provision_state(node, "deleted")
    for target, state in (("power off", "power off"), ("power on", "power on"), ("rebooting", "power on")):
        baremetal.set_node_power_state(node, target, wait=True, timeout=PATIENCE)
        assert baremetal.wait_for_node_power_state(node, state, timeout=PATIENCE).power_state == state
    assert baremetal.validate_node(node, required=("power", "management"))["power"].result


def test_the_sdk_waits_for_several_nodes(clients, baremetal):
    kind = unique("gpu")
    nodes = [clients.enrolled_node(kind) for _ in range(2)]
    for node in nodes:
        baremetal.set_node_provision_state(node, "manage")
    manageable_nodes = baremetal.wait_for_nodes_provision_state(nodes, "manageable", timeout=PATIENCE)
    assert [node.provision_state for node in manageable_nodes] == ["manageable", "manageable"]


def test_the_sdk_lists_drivers(baremetal):
    assert DRIVER in {driver.name for driver in baremetal.drivers()}


def test_the_sdk_creates_and_deletes_an_allocation(clients, baremetal, exceptions):
    kind, name = unique("gpu"), unique("job")
    node = clients.available_node(kind, ("CUSTOM_FAST",), owner="lab")
    requested = baremetal.create_allocation(
        resource_class=kind, traits=["CUSTOM_FAST"], candidate_nodes=[node.id], name=name, owner="lab", extra={"a": 1}
    )
    assert (requested.state, requested.node_id) == ("allocating", None)
    lease = baremetal.wait_for_allocation(requested, timeout=PATIENCE)
    assert (lease.id, lease.state, lease.node_id, lease.owner) == (requested.id, "active", node.id, "lab")
    assert (lease.traits, lease.candidate_nodes, lease.extra) == (["CUSTOM_FAST"], [node.id], {"a": 1})
    allocated_node = baremetal.get_node(node.id)
    assert (allocated_node.instance_id, allocated_node.allocation_id) == (lease.id, lease.id)
    assert baremetal.get_allocation(name).id == baremetal.get_allocation(lease.id).id == lease.id
    assert baremetal.get_allocation(name, fields=["node_uuid"]).node_id == node.id
    with pytest.raises(exceptions.ConflictException, match=name):
        baremetal.create_allocation(resource_class=kind, name=name)
    with pytest.raises(exceptions.ConflictException, match=lease.id):
        baremetal.create_allocation(resource_class=kind, id=lease.id)

    baremetal.delete_allocation(name, ignore_missing=False)
    baremetal.delete_allocation(lease)
    with pytest.raises(exceptions.NotFoundException, match=f"Allocation {lease.id} could not be found"):
        baremetal.delete_allocation(lease.id, ignore_missing=False)
    with pytest.raises(exceptions.NotFoundException, match=f"Allocation {name} could not be found"):
        baremetal.get_allocation(name)
    assert baremetal.get_node(node.id).instance_id is None


def test_the_sdk_reports_why_an_allocation_failed(baremetal, exceptions):
    kind = unique("gpu")
    requested = baremetal.create_allocation(resource_class=kind)
    with pytest.raises(exceptions.ResourceFailure, match=f"no available nodes match the resource class {kind}"):
        baremetal.wait_for_allocation(requested, timeout=PATIENCE)
    failed = baremetal.wait_for_allocation(requested, timeout=PATIENCE, ignore_error=True)
    assert (failed.state, failed.node_id) == ("error", None)


def test_the_sdk_filters_lists_of_allocations(clients, baremetal):
    kind = unique("gpu")
    node = clients.available_node(kind, name=unique("web"), owner="lab")
    first = clients.active_allocation(kind, owner="lab")
    failed = [baremetal.create_allocation(resource_class=kind).id for _ in range(3)]
    for failed_id in failed:
        baremetal.wait_for_allocation(failed_id, timeout=PATIENCE, ignore_error=True)

    def ids_listed(**filters):
        return [allocation.id for allocation in baremetal.allocations(**filters)]

    assert ids_listed(resource_class=kind) == [first.id, *failed]
    assert ids_listed(resource_class=kind, limit=2) == ids_listed(resource_class=kind, limit=3) == [first.id, *failed]
    assert (
        ids_listed(resource_class=kind, state="active")
        == ids_listed(node=node.name)
        == ids_listed(node=node.id)
        == [first.id]
    )
    assert ids_listed(resource_class=kind, owner="lab") == [first.id]
    [listed] = baremetal.allocations(node=node.id, fields=["uuid", "state"])
    assert (listed.id, listed.state, listed.node_id) == (first.id, "active", None)


def test_the_sdk_updates_an_allocation(baremetal, exceptions):
    created = baremetal.create_allocation(resource_class=unique("gpu"), extra={"a": 1})
    name = unique("job")
    changed = baremetal.update_allocation(created, name=name, extra={"b": 2})
    assert (changed.id, changed.name, changed.extra) == (created.id, name, {"b": 2})
    changed = baremetal.patch_allocation(name, [{"op": "add", "path": "/extra/c", "value": {"d": [1]}}])
    assert changed.extra == {"b": 2, "c": {"d": [1]}}
    changed = baremetal.patch_allocation(created.id, [{"op": "remove", "path": "/name"}])
    assert changed.name is None
    with pytest.raises(exceptions.BadRequestException, match="Only the following can be updated"):
        baremetal.patch_allocation(created.id, [{"op": "replace", "path": "/owner", "value": "lab"}])


def test_the_sdk_allocates_a_node_in_use(clients, baremetal, exceptions):
    node = clients.deployed_node(unique("old"))
    lease = baremetal.create_allocation(node=node.id, resource_class=node.resource_class)
    assert (lease.state, lease.node_id) == ("active", node.id)
    assert baremetal.get_node(node.id).instance_id == lease.id
    with pytest.raises(exceptions.ConflictException, match=lease.id):
        baremetal.create_allocation(node=node.id)
    with pytest.raises(exceptions.ConflictException, match="active"):
        baremetal.delete_allocation(lease)
    baremetal.set_node_provision_state(node, "deleted", wait=True, timeout=PATIENCE)
    assert baremetal.get_node(node.id).instance_id is None
    with pytest.raises(exceptions.NotFoundException):
        baremetal.get_allocation(lease.id)
