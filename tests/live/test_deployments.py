"""The recipes of docs/swap: each tool's configuration starts this service on a database of the original.

Afterwards the database is returned to the original.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import re
import secrets
import shutil
import socket
import subprocess
import uuid
from collections.abc import Callable
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from tests import children, deployments, identity, servers
from tests.db import openstack_database
from tests.deployments import Deployment
from tests.docs.run_by import blocks_of
from tests.made import opened

pytestmark = [
    pytest.mark.parametrize("backend", [servers.MariaDB.kind], indirect=True, scope="session"),
    # One process of the run starts Keystone and memcached for them.
    pytest.mark.xdist_group("deployments"),
]
PAGE = "docs/swap/debian.rst"


def shell_block(text: str) -> str:
    """Return the shell block that contains this text, on the page about Debian's and Ubuntu's packages."""
    [block] = blocks_of(__file__, PAGE, text=text)
    return block.text


# --- the commands that start the service -----------------------------------------------------------------------------


def kolla(deployment: Deployment) -> list[str]:
    return ["uwsgi", str(deployment.path("/etc/placement/placement-api-uwsgi.ini"))]


def kolla_with_apache(deployment: Deployment) -> list[str]:
    return ["apache2", *deployments.apache(deployment, "/etc/apache2/conf-enabled/00-placement-api.conf")]


def ansible(deployment: Deployment) -> list[str]:
    if importlib.util.find_spec("systemd") is None:
        raise servers.Missing("systemd-python is not installed: `make servers` installs what `pip` needs to build it")
    return ["uwsgi", "--autoload", "--ini", str(deployment.path("/etc/uwsgi/placement-api.ini"))]


def ansible_with_module(deployment: Deployment) -> list[str]:
    ini = deployment.path("/etc/uwsgi/placement-api.ini")
    ini.write_text(re.sub(r"wsgi-file = .*", "wsgi = placement.wsgi.api:application", ini.read_text()))
    return ansible(deployment)


def helm(deployment: Deployment) -> list[str]:
    return [str(deployment.path("/tmp/placement-api.sh")), "start"]


def helm_with_apache(deployment: Deployment) -> list[str]:
    words = deployments.apache(deployment, "/etc/apache2/conf-enabled/wsgi-placement.conf")
    script = deployment.path("/tmp/placement-api-of-apache.sh")
    script.write_text(script.read_text().replace("apache2 -DFOREGROUND", f"apache2 {' '.join(words)}"))
    return [str(script), "start"]


def debian(deployment: Deployment) -> list[str]:
    deployment.shell(shell_block("wsgi-file"))
    ini = str(deployment.path("/etc/placement/placement-api-uwsgi.ini"))
    return ["uwsgi", "--http-socket", f"127.0.0.1:{deployment.port}", "--ini", ini]


def ubuntu(deployment: Deployment) -> list[str]:
    deployment.shell(shell_block("python-home"))
    return ["apache2", *deployments.apache(deployment, "/etc/apache2/sites-available/placement-api.conf")]


class Recipe(NamedTuple):
    """A tool: its files in tests/live/deployments, its paths and commands, and the database before the switch."""

    files: str
    environment: str
    directories: tuple[str, ...]
    bootstrap: tuple[str, ...]
    start: Callable[[Deployment], list[str]]
    #: The path of the log; None if the log is not written to a file.
    log: str | None
    original: str = openstack_database.NEWEST
    has_policy: bool = True
    released_while_served: bool = False


KOLLA = (
    *("kolla", "/var/lib/kolla/venv", ("/var/log/kolla/placement", "/var/lib/placement")),
    ("placement-manage db sync", "placement-manage db online_data_migrations"),
)
ANSIBLE = (
    *("openstack-ansible", "/openstack/venvs/placement-32.0.0", ("/run/placement-api/uwsgi",)),
    ("placement-manage db sync", "placement-manage db online_data_migrations"),
)
HELM = ("openstack-helm", "/var/lib/openstack", ("/var/www/cgi-bin/placement",), ("/tmp/db-sync.sh",))
PACKAGES = ("/opt/placement", ("/var/log/placement", "/var/lib/placement", "/var/log/apache2"))
SYNC = ("placement-manage db sync",)
#: The path of the server's output in the test.
OUTPUT = "/etc/placement/log"
RECIPES = {
    "kolla": Recipe(*KOLLA, kolla, "/var/log/kolla/placement/placement-api.log"),
    "kolla-Apache": Recipe(*KOLLA, kolla_with_apache, "/var/log/kolla/placement/placement-api.log"),
    "OpenStack-Ansible": Recipe(*ANSIBLE, ansible, None, openstack_database.OLDER),
    "OpenStack-Ansible-module": Recipe(*ANSIBLE, ansible_with_module, None),
    "openstack-helm": Recipe(*HELM, helm, OUTPUT, released_while_served=True),
    "openstack-helm-Apache": Recipe(*HELM, helm_with_apache, OUTPUT, openstack_database.OLDER),
    "Debian": Recipe(
        "debian", *PACKAGES, SYNC, debian, "/var/log/placement/placement-api.log", openstack_database.OLDER
    ),
    "Ubuntu": Recipe(
        *("ubuntu", *PACKAGES, SYNC, ubuntu, "/var/log/placement/placement-api.log", openstack_database.OLDER),
        has_policy=False,
    ),
}


# --- services of the recipes -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keystone():
    with identity.keystone() as started:
        started.create_user("nova", {"service": ["service"]})
        started.create_user("somebody", {"service": ["reader"]})
        yield started


@pytest.fixture(scope="module")
def memcached():
    program = shutil.which("memcached")
    if program is None:
        raise servers.Missing("memcached is not installed: `make servers` installs it")
    port = children.free_port()
    argv = [program, "-l", "127.0.0.1", "-p", str(port), "-u", "nobody"]
    server = children.Child(argv, children.run_directory() / f"memcached-{secrets.token_hex(4)}.log")

    def answers():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    server.wait_until(answers)
    yield f"127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def database(backend, recipe):
    """The URL of a database in the state that the original leaves."""
    url = backend.create_database()
    with opened(url) as opened_database:
        openstack_database.make(opened_database.engine, recipe.original)
    yield url
    backend.drop_database(url)


@pytest.fixture
def owner(database):
    with deployments.owner(database) as owned:
        yield owned


@pytest.fixture
def deployment(recipe, owner, keystone, memcached):
    addresses = {
        "placement:secret@db.example.org:3306/placement": owner,
        "http://keystone.example.org:5000": keystone.url.removesuffix("/v3"),
        "memcached.example.org:11211": memcached,
        "password = secret": f"password = {identity.PASSWORD}",
        "RegionOne": identity.REGION,
        "regionOne": identity.REGION,
    }
    return Deployment(recipe.files, recipe.environment, recipe.directories, addresses)


# --- the recipes -----------------------------------------------------------------------------------------------------


def ask(service, token, method, path, body=None):
    """Return the status and the body of the response."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=children.PATIENCE)
    headers = {"OpenStack-API-Version": "placement 1.39", "Content-Type": "application/json", "X-Auth-Token": token}
    with contextlib.closing(connection):
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read() or "null")


def health_check_line(port):
    """Return the first line of the response to the check of OpenStack-Ansible's haproxy: HTTP/1.0 without a Host."""
    with socket.create_connection(("127.0.0.1", port), timeout=children.PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\nUser-agent: osa-haproxy-healthcheck\r\n\r\n")
        return connection.makefile("rb").readline().decode()


def claim(service, token, provider, consumer):
    body = {"allocations": {provider: {"resources": {"VCPU": 2}}}, "consumer_type": "INSTANCE"}
    body |= {"project_id": "p", "user_id": "u", "consumer_generation": None}
    return ask(service, token, "PUT", f"/allocations/{consumer}", body)[0]


def tables(url):
    with opened(url) as database:
        return set(sa.inspect(database.engine).get_table_names())


def read(url, statement, **values):
    """Return the rows of a statement."""
    with opened(url) as database, database.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(statement), values)]


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_the_recipe_serves_a_claim_and_leads_back(recipe, deployment, database, keystone):
    before = tables(database)
    deployment.shell("\n".join(recipe.bootstrap))
    deployment.run("placement-manage", "db", "online_data_migrations")  # not all tools run it
    # The database contains over-committed inventories, which cause a warning.
    assert "Result: Failure" not in deployment.run("placement-status", "upgrade", "check", expected=1)
    nova, somebody = keystone.token("nova", "service"), keystone.token("somebody", "service")
    consumer, other = str(uuid.uuid4()), str(uuid.uuid4())
    back = ["placement-manage", "db", "release", "--force", "--revision", recipe.original]

    with deployment.serving(*recipe.start(deployment)) as service:
        assert " 200 " in health_check_line(service.port)
        status, provider = ask(service, nova, "POST", "/resource_providers", {"name": "new", "uuid": str(uuid.uuid4())})
        assert status == 200, provider
        path, stock = f"/resource_providers/{provider['uuid']}", {"VCPU": {"total": 8}}
        stock = {"resource_provider_generation": 0, "inventories": stock}
        assert ask(service, nova, "PUT", f"{path}/inventories", stock)[0] == 200
        assert claim(service, nova, provider["uuid"], consumer) == 204
        assert ask(service, nova, "GET", f"{path}/usages")[1]["usages"] == {"VCPU": 2}
        # The records of the original exist, too.
        assert len(ask(service, nova, "GET", "/resource_providers")[1]["resource_providers"]) > 1
        assert ask(service, somebody, "GET", "/traits")[0] == (200 if recipe.has_policy else 403)
        if recipe.log is not None:
            assert f'"PUT /allocations/{consumer}" status: 204' in deployment.path(recipe.log).read_text()
        if recipe.released_while_served:
            deployment.run(*back)
            assert claim(service, nova, provider["uuid"], other) == 503
    if not recipe.released_while_served:
        deployment.run(*back)

    assert tables(database) == before
    assert read(database, "SELECT version_num FROM alembic_version") == [(recipe.original,)]
    used = "SELECT used FROM allocations WHERE consumer_id = :consumer"
    assert read(database, used, consumer=consumer) == [(2,)]
    assert read(database, used, consumer=other) == []


@pytest.mark.parametrize("recipe", [RECIPES["openstack-helm"]], ids=["openstack-helm"])
def test_the_probe_of_kubernetes_reaches_the_statistics_of_uwsgi(recipe, deployment):
    deployment.shell("\n".join(recipe.bootstrap))
    with deployment.serving(*recipe.start(deployment)):
        connection = http.client.HTTPConnection("127.0.0.1", deployment.stats_port, timeout=children.PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", "/")
            assert connection.getresponse().status == 200


@pytest.mark.parametrize("recipe", [RECIPES["kolla"]], ids=["kolla"])
def test_kolla_validates_the_configuration(recipe, deployment):
    """The validation reports exactly the options that this service does not define."""
    words = ["--config-file", str(deployments.ROOT / "etc/placement/config-generator.conf"), "--input-file"]
    path = deployment.path("/etc/placement/placement.conf")
    done = subprocess.run(
        ["oslo-config-validator", *words, str(path)], env=deployment.environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    unknown = {f"cache/{name}" for name in ("backend", "enabled", "memcache_servers")} | {"oslo_concurrency/lock_path"}
    assert {*re.findall(r"^ERROR:.*:(\S+) is not part", done.stderr, re.MULTILINE)} == unknown


@pytest.mark.parametrize("recipe", [RECIPES["kolla"]], ids=["kolla"])
def test_the_script_serves_as_a_command(recipe, deployment, keystone):
    deployment.shell("\n".join(recipe.bootstrap))
    with deployment.serving("placement-api", "--port", str(deployment.port)) as service:
        nova = keystone.token("nova", "service")
        assert ask(service, nova, "GET", "/traits")[0] == 200
        assert ask(service, "admin", "GET", "/traits")[0] == 401
