"""Without an Identity service: names and passwords over HTTP, with the plugin that services have for this."""

from __future__ import annotations

import bcrypt
import pytest
from keystoneauth1 import adapter, exceptions, loading, session

from tests import children, running, servers

# Who somebody is does not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

LATEST = {"headers": {"OpenStack-API-Version": "placement latest"}}


@pytest.fixture(scope="module")
def service(backend):
    file = children.run_directory() / "htpasswd"
    file.write_text(f"nova:{bcrypt.hashpw(b's3cret', bcrypt.gensalt(4)).decode()}\n")
    url = backend.create_database()
    options = {"api": {"auth_strategy": "http_basic"}, "oslo_middleware": {"http_basic_auth_user_file": file}}
    with running.embedded(url, options) as found:
        yield found
    backend.drop_database(url)


@pytest.fixture
def placement(service):
    """Gives the client of a service that knows this password."""

    def client(password):
        auth = loading.get_plugin_loader("http_basic").load_from_options(
            endpoint=service.url, username="nova", password=password
        )
        return adapter.Adapter(session.Session(auth=auth), service_type="placement")

    return client


def test_a_service_that_knows_the_password_may_do_everything(placement):
    nova = placement("s3cret")
    made = nova.post("/resource_providers", json={"name": "host1"}, **LATEST)
    uuid = made.json()["uuid"]
    inventories = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    assert nova.put(f"/resource_providers/{uuid}/inventories", json=inventories, **LATEST).status_code == 200
    moved = {uuid: inventories | {"resource_provider_generation": 1}}
    reshaped = nova.post("/reshaper", json={"inventories": moved, "allocations": {}}, **LATEST)
    assert reshaped.status_code == 204
    assert nova.delete(f"/resource_providers/{uuid}").status_code == 204


def test_a_service_that_does_not_know_it_may_not(placement):
    with pytest.raises(exceptions.Unauthorized) as refused:
        placement("wrong").get("/resource_providers")
    assert refused.value.response.headers["WWW-Authenticate"].startswith("Basic ")


def test_the_openstack_command_of_an_operator(service, openstack_command):
    identity = ["--os-auth-type", "http_basic", "--os-endpoint", service.url, "--os-username", "nova"]
    identity += ["--os-password", "s3cret"]
    done = openstack_command([*identity, "resource", "class", "list", "-f", "value"])
    assert done.returncode == 0, done.stderr
    assert "VCPU" in done.stdout.split()
