"""Clients of the Bare Metal API: configuration, version negotiation, retries and errors.

This does not depend on the kind of database.
"""

from __future__ import annotations

import json
import re
import time
import uuid

import bcrypt
import pytest

from tests import children, running, servers
from tests.baremetal_clients import DRIVER, Clients, Commands, unique

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # warnings of the clients themselves
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
]

#: Suffixes of the URL of the API.
ENDINGS = ["", "/", "/v1", "/v1/"]


# --- configuration ------------------------------------------------------------------------------------------------


@pytest.fixture
def node(clients):
    """An enrolled node with a name."""
    return clients.enrolled_node(unique("pointed"), name=unique("web"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_endpoints_may_end_with_a_version_or_a_slash(clients, node, ending):
    clients_with_ending = Clients(f"{clients.url}{ending}")
    assert clients_with_ending.openstack.show(f"node show {node.name} --fields uuid") == {"uuid": node.id}
    assert clients_with_ending.baremetal.get_node(node.name).id == node.id
    allocation_uuid = clients_with_ending.openstack.show(f"allocation create --resource-class {node.resource_class}")[
        "uuid"
    ]
    assert [
        allocation.id
        for allocation in clients_with_ending.baremetal.allocations(resource_class=node.resource_class, limit=1)
    ] == [allocation_uuid]


def test_the_standalone_command_shows_a_node(clients, node):
    commands = Commands(*clients.openstack.options, program="baremetal")
    assert commands.show(f"node show {node.name}")["uuid"] == node.id


@pytest.mark.parametrize("program", ["openstack", "baremetal"])
def test_environment_variables_configure_the_commands(clients, node, program):
    commands = Commands(program=program, OS_AUTH_TYPE="none", OS_ENDPOINT=clients.url)
    assert commands.show(f"node show {node.name}")["uuid"] == node.id


def test_clouds_yaml_configures_the_command_and_the_sdk(clients, node, tmp_path, monkeypatch):
    file = tmp_path / "clouds.yaml"
    file.write_text(json.dumps({"clouds": {"lab": {"auth_type": "none", "auth": {"endpoint": clients.url}}}}))
    commands = Commands(OS_CLIENT_CONFIG_FILE=str(file), OS_CLOUD="lab")
    assert commands.show(f"node show {node.name}")["uuid"] == node.id
    import openstack

    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(file))
    assert openstack.connect(cloud="lab").baremetal.get_node(node.name).id == node.id


@pytest.fixture
def protected_url(backend):
    """The URL of a service that requires a password."""
    file = children.run_directory() / "htpasswd-baremetal"
    file.write_text(f"lab:{bcrypt.hashpw(b's3cret', bcrypt.gensalt(4)).decode()}\n")
    url = backend.create_database()
    options = {
        "api": {"auth_strategy": "http_basic"},
        "baremetal": {"enabled": True},
        "oslo_middleware": {"http_basic_auth_user_file": file},
    }
    with running.embedded(url, options) as embedded:
        yield f"{embedded.url}/baremetal"
    backend.drop_database(url)


def test_clients_send_the_password_of_http_basic(protected_url):
    def commands(password):
        identity = ("--os-username", "lab", "--os-password", password)
        return Commands("--os-auth-type", "http_basic", "--os-endpoint", protected_url, *identity)

    lab = Clients(protected_url).connect(auth_type="http_basic", username="lab", password="s3cret").baremetal
    name = unique("web")
    created = commands("s3cret").show(f"node create --driver {DRIVER} --name {name}")
    assert lab.get_node(name).id == created["uuid"]
    assert "(HTTP 401)" in commands("wrong").error_of("node list")
    assert "(HTTP 401)" in Clients(protected_url).openstack.error_of("node list")
    with pytest.raises(Exception, match="has no credentials"):
        Clients(protected_url).baremetal.get_node(name)


# --- versions --------------------------------------------------------------------------------------------------------


#: Makes the command send a version that no server supports.
NEWER = """
from ironicclient.osc import plugin
plugin.API_VERSIONS["1.999"] = plugin.CLIENT_CLASS
plugin.LATEST_VERSION = "1.999"
"""


def test_a_client_newer_than_the_server_negotiates_a_version(clients, node):
    """The client sends its newest version, reads the range from /v1, and repeats the request."""
    newer = Commands(*clients.openstack.options, first=NEWER)
    assert newer.show(f"node show {node.name} --fields uuid") == {"uuid": node.id}


def test_a_version_unknown_to_the_server_is_refused(clients):
    newer = Commands(*clients.openstack.options, "--os-baremetal-api-version", "1.999", first=NEWER)
    refused = newer.error_of("node list")
    assert "1.999" in refused
    assert re.search(r"Supported version range is 1\.1 to 1\.\d{3}\b", refused)


def test_the_user_can_choose_the_version(clients, node):
    def at(version):
        return Commands(*clients.openstack.options, "--os-baremetal-api-version", version)

    assert at("latest").show(f"node show {node.name} --fields uuid") == {"uuid": node.id}
    assert "(HTTP 404)" in at("1.51").error_of("allocation list")
    assert "(HTTP 405)" in at("1.51").error_of("allocation create --resource-class gpu")
    assert "allocation_uuid" not in at("1.51").show(f"node show {node.id}")
    allocation_uuid = at("1.52").show(f"allocation create --resource-class {node.resource_class}")["uuid"]
    assert "owner" not in at("1.59").show(f"allocation show {allocation_uuid}")
    assert "(HTTP 405)" in at("1.56").error_of(f"allocation set {allocation_uuid} --extra a=1")
    at("1.57").do(f"allocation set {allocation_uuid} --extra a=1")
    assert "(HTTP 404)" in at("1.1").error_of(f"node show {node.name}")
    assert at("1.5").show(f"node show {node.name}")["uuid"] == node.id


# --- retries and errors ----------------------------------------------------------------------------------------------


def test_the_command_repeats_a_refused_request(clients):
    """The command sends the request again up to five times, two seconds apart."""
    create = f"allocation create --resource-class {unique('gpu')} --name {unique('job')}"
    clients.openstack.do(create)
    impatient = "import sys, time\ntime.sleep = lambda seconds: print('waits', seconds, file=sys.stderr)"
    refused = Commands(*clients.openstack.options, first=impatient).error_of(create)
    assert refused.count("waits 2") == 5
    assert create.split()[-1] in refused
    assert "(HTTP 409)" in refused


def test_the_sdk_repeats_a_refused_request(clients, monkeypatch):
    """The SDK sends the request again as often as configured."""
    from openstack import exceptions

    kind, name = unique("gpu"), unique("job")
    existing = clients.baremetal.create_allocation(resource_class=kind, name=name)
    waited = []
    monkeypatch.setattr(time, "sleep", waited.append)
    patient, impatient = clients.connect(), clients.connect(baremetal_status_code_retries=2)
    for connection, expected in ((patient, [0.5, 1.0, 2.0, 4.0, 8.0]), (impatient, [0.5, 1.0])):
        with pytest.raises(exceptions.ConflictException, match=name):
            connection.baremetal.create_allocation(resource_class=kind, name=name)
        assert waited == expected
        waited.clear()

    # The cause of the conflict ends between two attempts.
    monkeypatch.setattr(time, "sleep", lambda _: clients.baremetal.delete_allocation(existing))
    assert patient.baremetal.create_allocation(resource_class=kind, name=name).id != existing.id


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("node show {unknown}", 404),
        ("allocation show {unknown}", 404),
        ("allocation show 'two words'", 400),
        ("node create --driver floppy", 400),
        ("allocation list --node {unknown}", 400),
        ("node provide {node}", 400),
    ],
)
def test_errors_show_a_sentence_and_the_status(clients, node, command, status):
    refused = clients.openstack.error_of(command.format(unknown=uuid.uuid4(), node=node.id))
    sentence, _, end = refused.partition(" (HTTP ")
    assert end.startswith(f"{status})")
    assert len(sentence.split()) > 3
    assert [text for text in ("{", "faultstring", "Traceback") if text in sentence] == []
