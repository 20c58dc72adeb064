"""Without an Identity service: HTTP Basic authentication, with keystoneauth's plugin."""

from __future__ import annotations

import base64
import contextlib
import http.client
import shlex
import threading

import bcrypt
import pytest
from keystoneauth1 import adapter, exceptions, loading, session
from oslo_config import cfg

from tests import children, running, servers
from tests.docs.run_by import blocks_of, options_of

# Authentication does not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

PAGE, URL = "docs/configuration.rst", "https://placement.example.org"
LATEST = {"headers": {"OpenStack-API-Version": "placement latest"}}


@pytest.fixture(scope="module")
def service(backend):
    file = children.run_directory() / "htpasswd"
    file.write_text(f"nova:{bcrypt.hashpw(b's3cret', bcrypt.gensalt(4)).decode()}\n")
    url = backend.create_database()
    (block,) = blocks_of(__file__, PAGE, "ini")
    options = options_of(block) | {"oslo_middleware": {"http_basic_auth_user_file": file}}
    with running.embedded(url, options) as embedded:
        yield embedded
    backend.drop_database(url)


@pytest.fixture
def placement(service, tmp_path):
    """Return a function that returns a client with a password, configured like nova on the page."""
    (block,) = blocks_of(__file__, PAGE, "nova.conf")

    def client(password):
        file, conf = tmp_path / "nova.conf", cfg.ConfigOpts()
        file.write_text(block.text.replace(URL, service.url).replace("password = secret", f"password = {password}"))
        loading.register_auth_conf_options(conf, "placement")
        conf(["--config-file", str(file)])
        auth = loading.load_auth_from_conf_options(conf, "placement")
        return adapter.Adapter(session.Session(auth=auth), service_type="placement")

    return client


def test_a_client_with_the_password_may_do_everything(placement):
    nova = placement("s3cret")
    created = nova.post("/resource_providers", json={"name": "host1"}, **LATEST)
    uuid = created.json()["uuid"]
    inventories = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    assert nova.put(f"/resource_providers/{uuid}/inventories", json=inventories, **LATEST).status_code == 200
    moved = {uuid: inventories | {"resource_provider_generation": 1}}
    reshaped = nova.post("/reshaper", json={"inventories": moved, "allocations": {}}, **LATEST)
    assert reshaped.status_code == 204
    assert nova.delete(f"/resource_providers/{uuid}").status_code == 204


def test_a_client_without_the_password_is_refused(placement):
    with pytest.raises(exceptions.Unauthorized) as refused:
        placement("wrong").get("/resource_providers")
    assert refused.value.response.headers["WWW-Authenticate"].startswith("Basic ")


def test_the_openstack_command_of_the_page_sends_the_password(service, openstack_command):
    (block,) = blocks_of(__file__, PAGE, "shell")
    export, *words = shlex.split(block.text.replace(URL, service.url).replace("=secret", "=s3cret"))
    assert export == "export"
    variables = dict(word.split("=") for word in words)
    done = openstack_command(["resource", "class", "list", "-f", "value"], **variables)
    assert done.returncode == 0, done.stderr
    assert "VCPU" in done.stdout.split()


def test_the_openstack_command_reports_a_wrong_password(service, openstack_command):
    identity = ["--os-auth-type", "http_basic", "--os-endpoint", service.url, "--os-username", "nova"]
    done = openstack_command([*identity, "--os-password", "wrong", "resource", "provider", "list"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip() == "The request has no credentials, or they are not accepted. (HTTP 401)"


def test_guesses_do_not_delay_clients_with_a_correct_password(backend):
    """Eight guesses at once, from the address of the clients."""
    file = children.run_directory() / "htpasswd-guessed"
    file.write_text(f"nova:{bcrypt.hashpw(b's3cret', bcrypt.gensalt(4)).decode()}\n")
    options = {"api": {"auth_strategy": "http_basic"}, "oslo_middleware": {"http_basic_auth_user_file": file}}
    url = backend.create_database()
    with running.embedded(url, options) as service:
        statuses_of_nova = [ask(service, "nova", "s3cret") for _ in range(2)]
        stop = threading.Event()
        statuses = []

        def guess(number):
            while not stop.is_set():
                statuses.append(ask(service, f"user{number}", "guess"))

        guessers = [threading.Thread(target=guess, args=(number,)) for number in range(8)]
        for guesser in guessers:
            guesser.start()
        try:
            service.wait_until(lambda: statuses.count(429) >= 8)
            statuses_of_nova += [ask(service, "nova", "s3cret") for _ in range(20)]
        finally:
            stop.set()
            for guesser in guessers:
                guesser.join()
    backend.drop_database(url)
    assert {*statuses_of_nova} == {200}
    assert set(statuses) == {401, 429}


def ask(service, name, password):
    """Return the status of a response."""
    token = base64.b64encode(f"{name}:{password}".encode()).decode()
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", service.port, timeout=children.PATIENCE)
    ) as connection:
        connection.request(
            "GET", "/traits?name=in:HW_CPU_X86_VMX", headers={"Authorization": f"Basic {token}", **LATEST["headers"]}
        )
        answer = connection.getresponse()
        answer.read()
        return answer.status
