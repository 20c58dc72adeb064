"""placement-manage consumers --ironic, with a service with the Bare Metal API in place of Ironic, as for imports."""

from __future__ import annotations

import json

import openstack
import pytest

from placement.extensions.orphans import command
from tests import closed, running
from tests.db.cloud import Cloud, uuids
from tests.nova import fake

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # warnings of the SDK itself
    # The clients do not depend on the kind of database.
    pytest.mark.parametrize("backend", ["sqlite"], indirect=True, scope="session"),
]
RELEASE = ("--release", "--older-than", "1d", "--yes", "--force")


@pytest.fixture(scope="module")
def ironic(tmp_path_factory):
    """The URL of a service with an allocated node and a node in use without an allocation, and the two consumers."""
    database = f"sqlite:///{tmp_path_factory.mktemp('there')}/there.sqlite"
    with running.embedded(database, {"baremetal": {"enabled": True}}) as embedded:
        url = f"{embedded.url}/baremetal"
        client = openstack.connect(auth_type="none", endpoint=url).baremetal
        for name in ("n1", "n2"):
            client.create_node(driver="redfish", name=name, resource_class=f"bm.{name}")
            client.set_node_provision_state(name, "manage", wait=True)
            client.set_node_provision_state(name, "provide", wait=True)
            client.set_node_power_state(name, "power off")
        allocated = client.wait_for_allocation(client.create_allocation(resource_class="bm.n1")).id
        [instance] = uuids(1)
        client.patch_node("n2", [{"op": "add", "path": "/instance_uuid", "value": instance}])
        yield url, allocated, instance


@pytest.fixture
def cloud(database, tmp_path, monkeypatch, in_process):
    return Cloud(database, tmp_path, monkeypatch, in_process)


def orphans(ran):
    assert ran.out, ran.err
    return {finding["consumer"] for finding in json.loads(ran.out)["found"] if finding["kind"] == "orphan"}


def test_a_consumer_without_a_node_is_an_orphan(cloud, ironic):
    url, allocated, _ = ironic
    cloud.connect(there=url)
    cloud.claim(allocated, kind="BAREMETAL")
    orphan, server = cloud.claim(kind="BAREMETAL"), cloud.claim()
    ran = cloud.run("--ironic", "there", "--json")
    assert (ran.code, orphans(ran)) == (command.DISCREPANCIES, {orphan})
    assert json.loads(ran.out)["summary"]["not_compared"] == {"INSTANCE": 1}
    assert cloud.run("--ironic", "there", *RELEASE).code == 0
    assert cloud.consumers() == {allocated, server}


def test_consumers_are_compared_with_nova_and_ironic_together(cloud, ironic):
    url, allocated, instance = ironic
    with fake.serve() as nova:
        cloud.connect(there=url, here=nova.url)
        [server] = uuids(1)
        nova.add(server, "host1")
        cloud.claim(server)
        cloud.claim(allocated, kind="BAREMETAL")
        cloud.claim(instance)
        orphan = cloud.claim(kind="BAREMETAL")
        assert orphans(cloud.run("--nova", "here", "--ironic", "there", "--json")) == {orphan}
        assert orphans(cloud.run("--nova", "here", "--json")) == {instance}


def test_an_ironic_that_cannot_be_read_releases_nothing(cloud):
    cloud.connect(there=closed.URL)
    consumer = cloud.claim(kind="BAREMETAL")
    ran = cloud.run("--ironic", "there", *RELEASE)
    assert (ran.code, ran.out, cloud.consumers()) == (1, "", {consumer})
    assert "Ironic cannot be read" in ran.err
