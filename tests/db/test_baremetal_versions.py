"""Requests in the first version of the Bare Metal API that has them, and in the version before it."""

from __future__ import annotations

import pytest

DRIVER = {"driver": "fake-hardware"}
#: The minor version, the request, and the status before that version and in it.
REQUESTS = [
    (27, "PUT", "/nodes/{node}/states/power", {"target": "soft power off"}, 406, 202),
    (27, "PUT", "/nodes/{node}/states/power", {"target": "power on", "timeout": 5}, 406, 202),
    (37, "GET", "/nodes/{node}/traits", None, 406, 200),
    (37, "PUT", "/nodes/{node}/traits", {"traits": []}, 405, 204),
    (37, "PUT", "/nodes/{node}/traits/CUSTOM_A", None, 405, 204),
    (37, "DELETE", "/nodes/{node}/traits", None, 404, 204),
    (37, "DELETE", "/nodes/{node}/traits/CUSTOM_B", None, 404, 204),
    (43, "GET", "/nodes?detail=True", None, 400, 200),
    (52, "GET", "/allocations/{allocation}", None, 404, 200),
    (52, "DELETE", "/allocations/{allocation}", None, 405, 204),
    (52, "GET", "/nodes/{node}/allocation", None, 404, 200),
    (52, "DELETE", "/nodes/{node}/allocation", None, 404, 204),
]


@pytest.mark.parametrize(("minor", "method", "path", "body", "before", "since"), REQUESTS)
def test_a_request_before_its_version_and_in_it(client, minor, method, path, body, before, since):
    node = client.node("n", traits=["CUSTOM_B"])
    allocation = client.created()["uuid"]
    named = path.format(node=node, allocation=allocation)
    statuses = [client(method, named, body, f"1.{number}").status for number in (minor - 1, minor)]
    assert statuses == [before, since]


@pytest.mark.parametrize(("version", "state"), [("1.1", None), ("1.2", "available")])
def test_the_state_of_an_available_node_has_a_name_since_version_1_2(client, version, state):
    node = client.node()
    assert client("GET", f"/nodes/{node}", version=version).body["provision_state"] == state


@pytest.mark.parametrize(("version", "state"), [("1.10", "available"), ("1.11", "enroll")])
def test_a_new_node_is_enrolled_since_version_1_11(client, version, state):
    assert client("POST", "/nodes", DRIVER, version).body["provision_state"] == state


def test_a_driver_has_a_type_since_version_1_30(client):
    shown = [client("GET", "/drivers", version=version).body["drivers"][0].keys() for version in ("1.29", "1.30")]
    assert shown == [{"name", "hosts"}, {"name", "hosts", "type"}]
