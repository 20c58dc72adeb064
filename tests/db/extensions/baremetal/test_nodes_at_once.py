"""Concurrent changes of one node or one allocation: no change is lost, and one client gets the node."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.db.in_process import placement

pytestmark = pytest.mark.every_database

THREADS = 6


def in_threads(count, ask):
    """Call ``ask(number)`` for all numbers in threads; return the results."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(ask, range(count)))


def add(path, value):
    return [{"op": "add", "path": path, "value": value}]


def test_no_patch_is_lost(client):
    node = client.node()
    answers = in_threads(30, lambda number: client("PATCH", f"/nodes/{node}", add(f"/extra/k{number}", number)))
    assert {answer.status for answer in answers} == {200}
    assert client("GET", f"/nodes/{node}").body["extra"] == {f"k{number}": number for number in range(30)}


def test_no_patch_of_an_allocation_is_lost(client):
    allocation = client.create_allocation()["uuid"]
    answers = in_threads(
        20, lambda number: client("PATCH", f"/allocations/{allocation}", add(f"/extra/k{number}", number))
    )
    assert {answer.status for answer in answers} == {200}
    assert client("GET", f"/allocations/{allocation}").body["extra"] == {f"k{number}": number for number in range(20)}


def test_no_trait_is_lost(client):
    node = client.node()
    answers = in_threads(20, lambda number: client("PUT", f"/nodes/{node}/traits/CUSTOM_T{number}"))
    assert {answer.status for answer in answers} == {204}
    assert len(client("GET", f"/nodes/{node}/traits").body["traits"]) == 20


def test_one_instance_gets_the_node(client):
    node = client.node()
    instances = [str(uuid.uuid4()) for _ in range(12)]
    answers = in_threads(12, lambda number: client("PATCH", f"/nodes/{node}", add("/instance_uuid", instances[number])))
    assert sorted(answer.status for answer in answers) == [200, *[409] * 11]
    (winner,) = [answer.body["instance_uuid"] for answer in answers if answer.status == 200]
    assert client("GET", f"/nodes/{node}").body["instance_uuid"] == winner


def test_one_node_gets_the_instance(client):
    nodes = [client.node() for _ in range(8)]
    instance = str(uuid.uuid4())
    answers = in_threads(8, lambda number: client("PATCH", f"/nodes/{nodes[number]}", add("/instance_uuid", instance)))
    assert sorted(answer.status for answer in answers) == [200, *[409] * 7]
    (listed,) = client("GET", f"/nodes?instance_uuid={instance}").body["nodes"]
    assert listed["uuid"] == nodes[[answer.status for answer in answers].index(200)]


def test_one_of_many_nodes_gets_the_name(client):
    answers = in_threads(
        8, lambda _: client("POST", "/nodes", {"driver": "ipmi", "name": "same", "resource_class": "new"})
    )
    assert sorted(answer.status for answer in answers) == [201, *[409] * 7]
    assert len(client("GET", "/nodes").body["nodes"]) == 1


def test_requests_that_lost_the_race_for_a_name_create_no_class(client, database):
    """Only the request that won leaves a class and an event."""
    body = {"driver": "ipmi", "name": "same"}
    answers = in_threads(8, lambda number: client("POST", "/nodes", {**body, "resource_class": f"class{number}"}))
    assert sorted(answer.status for answer in answers) == [201, *[409] * 7]
    [winning_class] = [answer.body["resource_class"] for answer in answers if answer.status == 201]
    ask = placement(database)
    classes = [row["name"] for row in ask("GET", "/resource_classes", 39).body["resource_classes"]]
    assert [name for name in classes if name.startswith("CUSTOM_")] == [f"CUSTOM_{winning_class.upper()}"]
    events = ask("GET", "/v1/events?kind=resource_class").body["events"]
    assert [event["name"] for event in events] == [f"CUSTOM_{winning_class.upper()}"]


def test_classes_change_while_holders_come_and_go(client, database):
    """In any order, the unit and its allocation are of the node's class."""
    node = client.node()
    service = placement(database)

    def ask(number):
        if number % 3 == 0:
            return client("PATCH", f"/nodes/{node}", add("/resource_class", f"class{number % 4}")).status
        if number % 3 == 1:
            return client("PATCH", f"/nodes/{node}", add("/instance_uuid", str(uuid.uuid4()))).status
        return client("PATCH", f"/nodes/{node}", [{"op": "remove", "path": "/instance_uuid"}]).status

    assert set(in_threads(36, ask)) <= {200, 409}
    document = client("GET", f"/nodes/{node}").body
    unit = f"CUSTOM_{document['resource_class'].upper()}"
    assert service("GET", f"/resource_providers/{node}/inventories", 39).body["inventories"].keys() == {unit}
    node_allocations = service("GET", f"/resource_providers/{node}/allocations", 39).body["allocations"]
    expected = {document["instance_uuid"]: {unit: 1}} if document["instance_uuid"] else {}
    assert {consumer: allocation["resources"] for consumer, allocation in node_allocations.items()} == expected
