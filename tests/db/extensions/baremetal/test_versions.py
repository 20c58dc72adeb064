"""Requests in the first version of the Bare Metal API that supports them, and in the version before."""

from __future__ import annotations

import pytest

#: The minor version, the request, and the status before that version and in it.
REQUESTS = [
    (27, "PUT", "/nodes/{node}/states/power", {"target": "soft power off"}, 406, 202),
    (27, "PUT", "/nodes/{node}/states/power", {"target": "power on", "timeout": 5}, 406, 202),
    (27, "PUT", "/nodes/{node}/states/power", {"target": "soft rebooting"}, 406, 202),
    (37, "DELETE", "/nodes/{node}/traits", None, 404, 204),
    (73, "PUT", "/nodes/{node}/states/provision", {"target": "deploy", "configdrive": "x"}, 406, 202),
]


@pytest.mark.parametrize(("minor", "method", "path", "body", "before", "since"), REQUESTS)
def test_a_request_is_served_from_its_version_on(client, minor, method, path, body, before, since):
    node = client.node("n", traits=["CUSTOM_B"])
    path_of_node = path.format(node=node)
    statuses = [client(method, path_of_node, body, f"1.{number}").status for number in (minor - 1, minor)]
    assert statuses == [before, since]


def test_undeploy_is_a_verb_before_version_1_73(client):
    node = client.node(provision_state="active")
    assert client("PUT", f"/nodes/{node}/states/provision", {"target": "undeploy"}, "1.72").status == 202


def test_a_driver_has_a_type_since_version_1_30(client):
    fields = [client("GET", "/drivers", version=version).body["drivers"][0].keys() for version in ("1.29", "1.30")]
    assert fields == [{"name", "hosts"}, {"name", "hosts", "type"}]
