"""The clients that operators and services use, against the running service: the openstack command, and the SDK.

Each command is a process, as in a shell.  `admin_token` is the authentication for noauth2.
"""

from __future__ import annotations

import json

import pytest

from tests import running, servers

# A client's requests do not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

CONSUMER = "5e1f0b7a-6a0e-4a53-8f0c-0d6b7f1c2d11"
AGGREGATE = "42896e0d-205d-4fe3-bd1e-100924931787"


@pytest.fixture(scope="module")
def service(backend):
    url = backend.create_database()
    with running.embedded(url) as embedded:
        yield embedded
    backend.drop_database(url)


@pytest.fixture
def openstack(service, openstack_command):
    """Return a function that runs a command and returns its output."""
    identity = ["--os-auth-type", "admin_token", "--os-endpoint", service.url, "--os-token", "admin"]

    def run(command, *, shows=True, refused=None, version=None):
        version_option = ["--os-placement-api-version", version] if version else []
        form = ["-f", "json"] if shows else []
        done = openstack_command([*identity, *version_option, *command.split(), *form])
        if refused is not None:
            assert (done.returncode, done.stderr.strip()) == (1, refused)
            return None
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if shows else done.stdout.strip()

    return run


def test_the_commands_of_an_operator_work_at_the_default_version(openstack):
    """At the version that the client chooses by default, 1.29."""
    host = openstack("resource provider create host1")
    assert (host["name"], host["generation"], host["parent_provider_uuid"]) == ("host1", 0, None)
    uuid = host["uuid"]
    inventory = openstack(f"resource provider inventory set {uuid} --resource VCPU=8 --resource MEMORY_MB=16384")
    assert {row["resource_class"]: row["total"] for row in inventory} == {"VCPU": 8, "MEMORY_MB": 16384}
    allocations = [
        {
            "resource_provider": uuid,
            "generation": 2,
            "resources": {"VCPU": 2, "MEMORY_MB": 4096},
            "project_id": "demo",
            "user_id": "alice",
        }
    ]
    claim = f"resource provider allocation set {CONSUMER} --allocation rp={uuid},VCPU=2,MEMORY_MB=4096"
    assert openstack(f"{claim} --project-id demo --user-id alice") == allocations
    assert openstack(f"resource provider allocation show {CONSUMER}") == allocations
    usages = openstack(f"resource provider usage show {uuid}")
    assert {row["resource_class"]: row["usage"] for row in usages} == {"VCPU": 2, "MEMORY_MB": 4096}
    openstack(
        f"resource provider delete {uuid}",
        shows=False,
        refused=f"Unable to delete resource provider {uuid}: Resource provider has allocations. (HTTP 409)",
    )
    openstack(f"resource provider allocation delete {CONSUMER}", shows=False)
    openstack(f"resource provider delete {uuid}", shows=False)
    error = f"No resource provider with uuid {uuid} found (HTTP 404)"
    openstack(f"resource provider show {uuid}", refused=error)


def test_the_commands_of_an_operator_work_at_the_latest_version(openstack):
    def latest(command, **options):
        return openstack(command, version="1.39", **options)

    uuid = latest("resource provider create host2")["uuid"]
    latest("resource class create CUSTOM_FPGA", shows=False)
    latest("trait create CUSTOM_RACK_7", shows=False)
    latest(f"resource provider inventory set {uuid} --resource CUSTOM_FPGA=2")
    traits = latest(f"resource provider trait set {uuid} --trait CUSTOM_RACK_7 --trait HW_CPU_X86_AVX2")
    assert {row["name"] for row in traits} == {"CUSTOM_RACK_7", "HW_CPU_X86_AVX2"}
    aggregates = latest(f"resource provider aggregate set {uuid} --aggregate {AGGREGATE} --generation 2")
    assert aggregates == [{"uuid": AGGREGATE}]
    owner = "--project-id demo --user-id alice --consumer-type INSTANCE"
    claim = f"resource provider allocation set {CONSUMER} {owner} --allocation rp={uuid},CUSTOM_FPGA="
    latest(
        f"{claim}3",
        refused="Unable to allocate inventory: Unable to create allocation for 'CUSTOM_FPGA' on resource provider "
        f"'{uuid}'. The requested amount would exceed the capacity. (HTTP 409)",
    )
    [allocation] = latest(f"{claim}2")
    assert (allocation["resources"], allocation["consumer_type"]) == ({"CUSTOM_FPGA": 2}, "INSTANCE")
    in_use = "Error in delete resource class: Cannot delete resource class CUSTOM_FPGA. Class is in use in inventory."
    latest("resource class delete CUSTOM_FPGA", shows=False, refused=f"{in_use} (HTTP 409)")


@pytest.mark.filterwarnings("ignore")  # warnings of the SDK itself
def test_the_methods_of_the_sdk_work(service):
    """The methods of the SDK's proxy, each at the version that the SDK chooses."""
    try:
        import openstack as sdk
    except ImportError:
        raise servers.Missing("openstacksdk is not installed: pip install openstacksdk") from None
    connection = sdk.connect(
        auth_type="admin_token", endpoint=service.url, token="admin", load_envvars=False, load_yaml_config=False
    )
    with connection:
        placement = connection.placement
        host = placement.create_resource_provider(name="host3")
        assert placement.find_resource_provider("host3").id == host.id
        assert placement.find_resource_provider("nobody") is None

        placement.create_resource_class(name="CUSTOM_OLD")
        placement.update_resource_class("CUSTOM_OLD", name="CUSTOM_NEW")  # a rename, which later versions lack
        names = {resource.name for resource in placement.resource_classes()}
        assert "CUSTOM_NEW" in names
        assert "CUSTOM_OLD" not in names
        placement.delete_resource_class("CUSTOM_NEW", ignore_missing=False)

        assert placement.create_resource_provider_inventory(host, "VCPU", total=8).total == 8
        placement.update_resource_provider_inventory("VCPU", host, total=9, resource_provider_generation=1)
        assert [resource.total for resource in placement.resource_provider_inventories(host)] == [9]
        with pytest.raises(sdk.exceptions.ConflictException) as refused:
            placement.update_resource_provider_inventory("VCPU", host, total=7, resource_provider_generation=1)
        assert "resource provider generation conflict" in refused.value.response.text

        placement.create_trait("CUSTOM_SDK")
        assert placement.get_trait("CUSTOM_SDK").id == "CUSTOM_SDK"
        host = placement.get_resource_provider(host.id)
        assert placement.set_resource_provider_aggregates(host, AGGREGATE).aggregates == [AGGREGATE]

        consumer = "5e1f0b7a-6a0e-4a53-8f0c-0d6b7f1c2d12"
        placement.update_allocation(
            consumer,
            allocations={host.id: {"resources": {"VCPU": 2}}},
            project_id="sdk",
            user_id="bob",
            consumer_type="INSTANCE",
            consumer_generation=None,
        )
        allocations = placement.get_allocation(consumer)
        assert (allocations.consumer_generation, allocations.allocations[host.id]["resources"]) == (1, {"VCPU": 2})
        assert [resource.resources for resource in placement.resource_provider_allocations(host)] == [{"VCPU": 2}]
        assert placement.fetch_resource_provider_usages(host).usages == {"VCPU": 2}
        [usage] = placement.usages(project_id="sdk")
        assert (usage.consumer_type, usage.consumer_count, usage.resources) == ("INSTANCE", 1, {"VCPU": 2})
        placement.delete_allocation(consumer, ignore_missing=False)
        with pytest.raises(sdk.exceptions.NotFoundException):
            placement.delete_allocation(consumer, ignore_missing=False)
        placement.delete_resource_provider(host, ignore_missing=False)
