"""The nodes of the Bare Metal API by `openstack baremetal node`: each command for operators."""

from __future__ import annotations

import uuid

import pytest

from tests import servers
from tests.baremetal_clients import DRIVER, unique
from tests.children import PATIENCE

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the clients themselves

#: Tests that do not depend on the kind of database.
ONE_DATABASE = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")


@pytest.fixture
def openstack(clients):
    return clients.openstack


def test_create_and_show_print_the_fields_of_a_node(openstack):
    name, resource_class = unique("web"), unique("compute.large")
    node = openstack.show(
        f"node create --driver {DRIVER} --name {name} --resource-class {resource_class} --lessee shop "
        "--property cpus=4 --property arch=x86_64 --extra rack=r7 --description 'the first'"
    )
    assert (node["name"], node["driver"], node["resource_class"]) == (name, DRIVER, resource_class)
    assert (node["properties"], node["extra"]) == ({"cpus": 4, "arch": "x86_64"}, {"rack": "r7"})
    assert (node["owner"], node["lessee"], node["description"]) == (None, "shop", "the first")
    assert (node["provision_state"], node["power_state"], node["maintenance"]) == ("enroll", None, False)
    assert (node["instance_uuid"], node["allocation_uuid"], node["traits"]) == (None, None, [])

    fields = openstack.show(f"node show {name}")
    assert fields["uuid"] == node["uuid"]
    assert openstack.show(f"node show {node['uuid']}") == fields
    assert openstack.show(f"node show {name} --fields uuid resource_class") == {
        "uuid": node["uuid"],
        "resource_class": resource_class,
    }


@ONE_DATABASE
def test_create_accepts_an_owner(openstack, clients):
    if clients.root is None:
        pytest.skip("without an Identity service, Ironic refuses an owner")
    node = openstack.show(f"node create --driver {DRIVER} --owner lab")
    assert openstack.show(f"node show {node['uuid']} --fields owner") == {"owner": "lab"}


def test_create_accepts_a_uuid_and_requires_no_name(openstack):
    chosen = str(uuid.uuid4())
    assert openstack.show(f"node create --driver {DRIVER} --uuid {chosen}")["uuid"] == chosen
    assert openstack.show(f"node show {chosen} --fields name resource_class") == {"name": None, "resource_class": None}


@ONE_DATABASE
def test_create_refuses_an_invalid_node(openstack):
    assert "(HTTP 400)" in openstack.error_of("node create --driver floppy")
    assert "(HTTP 400)" in openstack.error_of(f"node create --driver {DRIVER} --name 'two words'")
    assert "(HTTP 400)" in openstack.error_of(f"node create --driver {DRIVER} --name maintenance")


def test_lists_of_nodes_show_chosen_fields(openstack, clients):
    resource_class = unique("lists")
    names = [unique(word) for word in ("a", "b", "c")]
    uuids = [clients.enrolled_node(resource_class, name=name).id for name in names]
    of_class = f"node list --resource-class {resource_class}"
    rows = openstack.show(of_class)
    assert [row["name"] for row in rows] == names
    assert rows[0] == {
        "uuid": uuids[0],
        "name": names[0],
        "instance_uuid": None,
        "power_state": None,
        "provision_state": "enroll",
        "maintenance": False,
    }

    all_rows = openstack.show("node list --limit 0")
    assert {row["uuid"] for row in all_rows} >= set(uuids)
    detailed = {row["uuid"]: row for row in openstack.show("node list --long --limit 0")}
    assert detailed[uuids[1]]["resource_class"] == resource_class
    chosen_fields = openstack.show(f"{of_class} --fields uuid resource_class traits")
    assert chosen_fields[0] == {"uuid": uuids[0], "resource_class": resource_class, "traits": []}

    assert [row["uuid"] for row in openstack.show(f"{of_class} --sort name:desc")] == uuids[::-1]
    assert [row["uuid"] for row in openstack.show(f"{of_class} --limit 2")] == uuids[:2]
    assert [row["uuid"] for row in openstack.show(f"{of_class} --limit 2 --marker {uuids[1]}")] == uuids[2:]
    assert [row["uuid"] for row in openstack.show(f"{of_class} --limit 0")] == uuids


def test_lists_of_nodes_are_filtered(openstack, clients):
    resource_class = unique("filters")
    free = clients.available_node(resource_class, owner="lab")
    allocated = clients.available_node(resource_class, lessee="shop")
    clients.active_allocation(resource_class, candidate_nodes=[allocated.id])
    enrolled = clients.enrolled_node(resource_class, is_maintenance=True, description="a spare machine")

    def uuids_listed(options):
        return {row["uuid"] for row in openstack.show(f"node list --resource-class {resource_class} {options}")}

    assert uuids_listed("--provision-state available --unassociated --no-maintenance --limit 5") == {free.id}
    assert uuids_listed("--associated") == {allocated.id}
    assert uuids_listed("--unassociated") == {free.id, enrolled.id}
    assert uuids_listed("--maintenance") == {enrolled.id}
    assert uuids_listed("--no-maintenance") == {free.id, allocated.id}
    assert uuids_listed("--provision-state enroll") == {enrolled.id}
    assert uuids_listed("--owner lab") == {free.id}
    assert uuids_listed("--lessee shop") == {allocated.id}
    assert uuids_listed(f"--driver {DRIVER}") == {free.id, allocated.id, enrolled.id}
    assert uuids_listed("--driver floppy") == set()
    assert uuids_listed("--description-contains spare") == {enrolled.id}
    assert uuids_listed("--provision-state active") == set()


def test_set_and_unset_change_fields_of_a_node(openstack):
    resource_class = unique("set")
    node = openstack.show(f"node create --driver {DRIVER} --extra rack=r7 --property cpus=4")["uuid"]
    name = unique("renamed")
    openstack.do(
        f"node set {node} --name {name} --resource-class {resource_class} --owner lab --lessee shop "
        "--description spare --extra row=3 --extra 'position={\"unit\": 12}' --property cpus=8 "
        "--driver-info address=192.0.2.7"
    )
    fields = openstack.show(f"node show {name}")
    assert (fields["uuid"], fields["resource_class"], fields["owner"], fields["lessee"]) == (
        node,
        resource_class,
        "lab",
        "shop",
    )
    assert (fields["extra"], fields["properties"]) == ({"rack": "r7", "row": 3, "position": {"unit": 12}}, {"cpus": 8})
    assert (fields["description"], fields["driver_info"]) == ("spare", {"address": "192.0.2.7"})

    openstack.do(f"node unset {name} --extra rack --extra row --property cpus --owner --lessee --description --name")
    fields = openstack.show(f"node show {node}")
    assert (fields["name"], fields["owner"], fields["lessee"], fields["description"]) == (None, None, None, None)
    assert (fields["extra"], fields["properties"]) == ({"position": {"unit": 12}}, {})


def test_set_assigns_an_instance_by_hand(openstack, clients):
    instance = str(uuid.uuid4())
    node = clients.available_node(unique("byhand")).id
    openstack.do(f"node set {node} --instance-uuid {instance}")
    fields = openstack.show(f"node show --instance {instance}")
    assert (fields["uuid"], fields["instance_uuid"], fields["allocation_uuid"]) == (node, instance, None)
    openstack.do(f"node unset {node} --instance-uuid")
    assert openstack.show(f"node show {node} --fields instance_uuid") == {"instance_uuid": None}
    assert "(HTTP 404)" in openstack.error_of(f"node show --instance {instance}")


def test_trait_commands_change_the_traits(openstack, clients):
    node = clients.enrolled_node(unique("traits")).id

    def traits():
        return set(clients.baremetal.get_node(node).traits)

    openstack.do(f"node add trait {node} CUSTOM_RACK_7 HW_CPU_X86_AVX2 CUSTOM_GPU")
    openstack.do(f"node add trait {node} CUSTOM_GPU")
    assert traits() == {"CUSTOM_RACK_7", "HW_CPU_X86_AVX2", "CUSTOM_GPU"}
    assert {row["traits"] for row in openstack.show(f"node trait list {node}")} == traits()
    assert set(openstack.show(f"node show {node} --fields traits")["traits"]) == traits()
    openstack.do(f"node remove trait {node} CUSTOM_RACK_7")
    assert traits() == {"HW_CPU_X86_AVX2", "CUSTOM_GPU"}
    openstack.do(f"node remove trait {node} --all")
    assert traits() == set()
    assert "CUSTOM_GPU" in openstack.error_of(f"node remove trait {node} CUSTOM_GPU")
    assert "bad-trait" in openstack.error_of(f"node add trait {node} bad-trait")


def test_maintenance_commands_change_the_maintenance(openstack, clients):
    node = clients.enrolled_node(unique("maintained")).id

    def maintenance():
        record = clients.baremetal.get_node(node)
        return record.is_maintenance, record.maintenance_reason

    openstack.do(f"node maintenance set {node} --reason 'a fan is loud'")
    assert maintenance() == (True, "a fan is loud")
    openstack.do(f"node maintenance unset {node}")
    assert maintenance() == (False, None)
    openstack.do(f"node maintenance set {node}")
    assert maintenance() == (True, None)


def test_commands_wait_for_the_state_of_a_node(openstack, clients):
    node = clients.enrolled_node(unique("states")).id
    for command, state in (
        ("manage", "manageable"),
        ("provide", "available"),
        ("deploy", "active"),
        ("undeploy", "available"),
        ("manage", "manageable"),
    ):
        openstack.do(f"node {command} {node} --wait 60")
        record = clients.baremetal.get_node(node)
        assert (record.provision_state, record.target_provision_state, record.last_error) == (state, None, None)
    refused = openstack.error_of(f"node deploy {node} --wait 60")
    assert "manageable" in refused
    assert "(HTTP 400)" in refused


def test_power_commands_change_the_power_state(openstack, clients):
    node = clients.available_node(unique("power")).id
    for command, state in (("power off", "power off"), ("power on", "power on"), ("reboot", "power on")):
        openstack.do(f"node {command} {node}")
        assert clients.baremetal.wait_for_node_power_state(node, state, timeout=PATIENCE).power_state == state


@ONE_DATABASE
def test_validate_and_driver_list_print_rows(openstack):
    node = openstack.show(f"node create --driver {DRIVER}")["uuid"]
    interfaces = {row["Interface"]: row["Result"] for row in openstack.show(f"node validate {node}")}
    assert {"deploy", "power", "management"} <= set(interfaces)
    drivers = {row["name"]: row for row in openstack.show("driver list")}
    assert DRIVER in drivers


def test_delete_removes_nodes(openstack, clients):
    nodes = [clients.enrolled_node(unique("gone"), name=unique("web")) for _ in range(2)]
    openstack.do(f"node delete {nodes[0].name} {nodes[1].id}")
    for node in nodes:
        refused = openstack.error_of(f"node show {node.id}")
        assert refused.startswith(f"Node {node.id} could not be found. (HTTP 404) (Request-ID: req-")
    refused = openstack.error_of(f"node delete {nodes[0].id}")
    assert nodes[0].id in refused
    assert "could not be found" in refused


@ONE_DATABASE
@pytest.mark.parametrize(
    "command",
    [
        "set {} --extra a=1",
        "manage {}",
        "power on {}",
        "maintenance set {}",
        "trait list {}",
        "add trait {} CUSTOM_A",
        "validate {}",
    ],
)
def test_commands_on_an_unknown_node_are_refused(openstack, command):
    assert "could not be found" in openstack.error_of(f"node {command.format(unique('nobody'))}")
