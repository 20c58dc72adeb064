"""Bare metal allocations by `openstack baremetal allocation`: each command for users."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from placement.extensions.baremetal.tables import baremetal_allocations
from tests import servers
from tests.baremetal_clients import unique
from tests.children import PATIENCE

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the clients themselves

#: Tests that do not depend on the kind of database.
ONE_DATABASE = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")


@pytest.fixture
def openstack(clients):
    return clients.openstack


def test_create_waits_for_a_node(openstack, clients):
    kind, name = unique("gpu"), unique("job")
    node = clients.available_node(kind, ("CUSTOM_FAST", "HW_CPU_X86_AVX2"), owner="lab")
    clients.available_node(kind, owner="lab")
    allocation = openstack.show(
        f"allocation create --resource-class {kind} --trait CUSTOM_FAST --trait HW_CPU_X86_AVX2 --name {name} "
        "--owner lab --extra ticket=17 --wait 60"
    )
    assert (allocation["state"], allocation["node_uuid"], allocation["last_error"]) == ("active", node.id, None)
    assert (allocation["name"], allocation["resource_class"], allocation["owner"]) == (name, kind, "lab")
    assert (allocation["traits"], allocation["candidate_nodes"]) == (["CUSTOM_FAST", "HW_CPU_X86_AVX2"], [])
    assert allocation["extra"] == {"ticket": 17}
    assert allocation["updated_at"] >= allocation["created_at"]
    assert openstack.show(f"node show {node.id} --fields instance_uuid allocation_uuid") == {
        "instance_uuid": allocation["uuid"],
        "allocation_uuid": allocation["uuid"],
    }
    fields = openstack.show(f"allocation show {name}")
    assert fields == {key: allocation[key] for key in fields}
    assert openstack.show(f"allocation show {allocation['uuid']}") == fields


@ONE_DATABASE
def test_create_returns_at_once(openstack, clients):
    kind, chosen = unique("gpu"), str(uuid.uuid4())
    node = clients.available_node(kind)
    allocation = openstack.show(f"allocation create --resource-class {kind} --uuid {chosen}")
    assert (allocation["uuid"], allocation["state"], allocation["node_uuid"]) == (chosen, "allocating", None)
    clients.baremetal.wait_for_allocation(chosen, timeout=PATIENCE)
    assert openstack.show(f"allocation show {chosen}")["node_uuid"] == node.id


def test_create_chooses_among_candidate_nodes(openstack, clients):
    kind = unique("gpu")
    nodes = [clients.available_node(kind, name=unique("web")) for _ in range(3)]
    create = (
        f"allocation create --resource-class {kind} --candidate-node {nodes[1].name} --candidate-node {nodes[2].id} "
        "--wait 60"
    )
    allocations = [openstack.show(create) for _ in range(2)]
    assert {tuple(allocation["candidate_nodes"]) for allocation in allocations} == {(nodes[1].id, nodes[2].id)}
    assert {allocation["node_uuid"] for allocation in allocations} == {nodes[1].id, nodes[2].id}
    reason = f"none of the requested nodes are available and match the resource class {kind}"
    assert reason in openstack.error_of(create)


def test_create_prefers_the_node_of_the_same_name(openstack, clients):
    kind = unique("gpu")
    nodes = [clients.available_node(kind, name=unique("web")) for _ in range(4)]
    for node in nodes[2], nodes[0]:
        allocation = openstack.show(f"allocation create --resource-class {kind} --name {node.name} --wait 60")
        assert allocation["node_uuid"] == node.id


def test_create_accepts_a_node_in_use(openstack, clients):
    kind = unique("old")
    node = clients.deployed_node(kind, name=unique("web"))
    allocation = openstack.show(f"allocation create --node {node.name}")
    assert (allocation["state"], allocation["node_uuid"], allocation["resource_class"]) == ("active", node.id, kind)
    assert openstack.show(f"node show {node.id} --fields instance_uuid") == {"instance_uuid": allocation["uuid"]}


def test_wait_ends_with_the_reason(openstack, clients):
    kind, name = unique("gpu"), unique("job")
    refused = openstack.error_of(f"allocation create --resource-class {kind} --name {name} --wait 60")
    failed = openstack.show(f"allocation show {name}")
    assert failed["last_error"] in refused
    assert failed["last_error"] == (
        f"Failed to process allocation {failed['uuid']}: no available nodes match the resource class {kind}."
    )
    assert (failed["state"], failed["node_uuid"]) == ("error", None)

    clients.available_node(kind)
    command = f"allocation create --resource-class {kind} --trait CUSTOM_FAST --trait CUSTOM_RED --wait 60"
    assert "no suitable nodes have the requested traits CUSTOM_FAST, CUSTOM_RED" in openstack.error_of(command)


@ONE_DATABASE
def test_create_refuses_an_invalid_allocation(openstack):
    assert "--resource-class" in openstack.error_of("allocation create --name alone")
    kind, nowhere = unique("gpu"), str(uuid.uuid4())
    create = f"allocation create --resource-class {kind}"
    for words, part in (
        ("--name 'two words'", "two words"),
        ("--trait fast", "fast"),
        (f"--candidate-node {nowhere}", nowhere),
        (f"--node {nowhere}", nowhere),
    ):
        refused = openstack.error_of(f"{create} {words}")
        assert part in refused
        assert "(HTTP 400)" in refused
    assert openstack.show(f"allocation list --resource-class {kind}") == []


def test_lists_of_allocations_are_filtered_and_sorted(openstack, clients):
    kind, other_kind = unique("gpu"), unique("cpu")
    nodes = [clients.available_node(kind, name=unique("web"), owner="lab") for _ in range(2)]
    first = clients.active_allocation(kind, name=unique("b"), owner="lab", candidate_nodes=[nodes[0].id])
    second = clients.active_allocation(kind, name=unique("a"), candidate_nodes=[nodes[1].id])
    third = clients.baremetal.create_allocation(resource_class=kind, name=unique("c"))
    clients.baremetal.wait_for_allocation(third, timeout=PATIENCE, ignore_error=True)
    clients.baremetal.create_allocation(resource_class=other_kind, name=unique("d"))

    def uuids_listed(options):
        return [allocation["uuid"] for allocation in openstack.show(f"allocation list {options}")]

    of_kind = f"--resource-class {kind}"
    [row, *_] = openstack.show(f"allocation list {of_kind}")
    assert row == {
        "uuid": first.id,
        "name": first.name,
        "resource_class": kind,
        "state": "active",
        "node_uuid": nodes[0].id,
    }
    assert uuids_listed(of_kind) == [first.id, second.id, third.id]
    assert uuids_listed(f"{of_kind} --sort name") == [second.id, first.id, third.id]
    assert uuids_listed(f"{of_kind} --state active") == [first.id, second.id]
    assert uuids_listed(f"{of_kind} --state error") == [third.id]
    assert uuids_listed(f"{of_kind} --owner lab") == [first.id]
    assert uuids_listed(f"--node {nodes[1].name}") == uuids_listed(f"--node {nodes[1].id}") == [second.id]
    assert set(uuids_listed("")) >= {first.id, second.id, third.id}
    assert "(HTTP 400)" in openstack.error_of(f"allocation list --node {unique('nobody')}")

    [long, *_] = openstack.show(f"allocation list {of_kind} --long")
    assert (long["owner"], long["candidate_nodes"], long["traits"]) == ("lab", [nodes[0].id], [])
    chosen = openstack.show(f"allocation list {of_kind} --fields uuid last_error")
    assert chosen[0] == {"uuid": first.id, "last_error": None}
    assert kind in chosen[2]["last_error"]


def test_lists_of_allocations_have_pages(openstack, clients):
    kind = unique("gpu")
    uuids = [clients.baremetal.create_allocation(resource_class=kind).id for _ in range(5)]

    def uuids_listed(options):
        return [row["uuid"] for row in openstack.show(f"allocation list --resource-class {kind} {options}")]

    assert uuids_listed("--limit 2") == uuids[:2]
    assert uuids_listed(f"--limit 2 --marker {uuids[1]}") == uuids[2:4]
    assert uuids_listed(f"--marker {uuids[3]}") == uuids[4:]
    assert uuids_listed("--limit 0") == uuids
    assert "(HTTP 404)" in openstack.error_of(f"allocation list --marker {uuid.uuid4()}")


@ONE_DATABASE
def test_lists_longer_than_a_page_are_complete(openstack, clients):
    """Both clients follow the links, which keep the filters, to the end."""
    if clients.database is None:
        pytest.skip("the database is not known")
    kind, other_kind = unique("gpu"), unique("cpu")
    rows = [
        {"uuid": str(uuid.uuid4()), "resource_class": kind if number % 500 else other_kind, "last_error": "no node"}
        | {"traits": [], "candidate_nodes": [], "extra": {}}
        for number in range(2, 1004)
    ]
    engine = sa.create_engine(clients.database)
    with engine.begin() as connection:
        connection.execute(sa.insert(baremetal_allocations), rows)
    engine.dispose()
    expected = [row["uuid"] for row in rows if row["resource_class"] == kind]
    assert len(expected) == 1000
    expected.append(openstack.show(f"allocation create --resource-class {kind}")["uuid"])

    def uuids_listed(options):
        return [
            allocation["uuid"] for allocation in openstack.show(f"allocation list --resource-class {kind} {options}")
        ]

    assert uuids_listed("") == uuids_listed("--limit 1000") == expected[:1000]
    assert uuids_listed("--limit 0") == uuids_listed("--limit 1001") == expected
    assert uuids_listed("--limit 0 --fields uuid state") == expected
    assert [allocation.id for allocation in clients.baremetal.allocations(resource_class=kind)] == expected
    assert [allocation.id for allocation in clients.baremetal.allocations(resource_class=kind, limit=400)] == expected


def test_set_and_unset_change_fields_of_an_allocation(openstack, clients):
    name, renamed = unique("job"), unique("job")
    allocation = openstack.show(
        f"allocation create --resource-class {unique('gpu')} --name {name} --extra a=1 --extra b=2"
    )
    openstack.do(f"allocation set {name} --name {renamed} --extra 'c={{\"deep\": [1, 2]}}' --extra a=3")
    fields = openstack.show(f"allocation show {allocation['uuid']}")
    assert (fields["name"], fields["extra"]) == (renamed, {"a": 3, "b": 2, "c": {"deep": [1, 2]}})
    openstack.do(f"allocation unset {renamed} --name --extra a --extra c")
    fields = openstack.show(f"allocation show {allocation['uuid']}")
    assert (fields["name"], fields["extra"]) == (None, {"b": 2})
    assert "(HTTP 400)" in openstack.error_of(f"allocation unset {allocation['uuid']} --extra missing")
    gone = openstack.error_of(f"allocation show {renamed}")
    assert gone.startswith(f"Allocation {renamed} could not be found. (HTTP 404)")


def test_delete_frees_the_node_of_an_allocation(openstack, clients):
    kind = unique("gpu")
    node = clients.available_node(kind)
    first = openstack.show(f"allocation create --resource-class {kind} --wait 60")
    second = openstack.show(f"allocation create --resource-class {kind} --name {unique('job')}")
    clients.baremetal.wait_for_allocation(second["uuid"], timeout=PATIENCE, ignore_error=True)
    openstack.do(f"allocation delete {first['uuid']} {second['name']}")
    for ended_uuid in (first["uuid"], second["uuid"]):
        assert "(HTTP 404)" in openstack.error_of(f"allocation show {ended_uuid}")
    node_after = openstack.show(f"node show {node.id} --fields instance_uuid allocation_uuid provision_state")
    assert node_after == {"instance_uuid": None, "allocation_uuid": None, "provision_state": "available"}
    assert "could not be found" in openstack.error_of(f"allocation delete {first['uuid']}")
    assert openstack.show(f"allocation create --resource-class {kind} --wait 60")["node_uuid"] == node.id


def test_a_lease_ends_with_its_deployment(openstack, clients):
    """Undeploying the node deletes its allocation."""
    kind = unique("gpu")
    node = clients.available_node(kind)
    allocation = openstack.show(f"allocation create --resource-class {kind} --wait 60")
    openstack.do(f"node deploy {node.id} --wait 60")
    openstack.do(f"node undeploy {node.id} --wait 60")
    assert "could not be found. (HTTP 404)" in openstack.error_of(f"allocation show {allocation['uuid']}")
    freed = openstack.show(f"node show {node.id} --fields instance_uuid allocation_uuid provision_state")
    assert freed == {"instance_uuid": None, "allocation_uuid": None, "provision_state": "available"}
