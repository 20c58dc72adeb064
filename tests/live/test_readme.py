"""The walks of README.rst, with curl and ``openstack``, print the output shown, and its production service starts."""

import contextlib
import http.client
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests
import sqlalchemy as sa

from placement import package
from tests import children, preloaded, running, servers, transcripts
from tests.docs.blocks import PAGES, ROOT, blocks
from tests.docs.run_by import blocks_of

PROMPT = "    $ "


@pytest.fixture
def make(tmp_path):
    """Return a function that runs a ``make`` command of the page: a context manager that yields the service's URL."""
    transcripts.install_in_checkout(tmp_path)

    def run(command):
        (block,) = blocks_of(__file__, "README.rst", text=command)
        target, _, comment = block.text.strip().partition("#")
        port = children.free_port()
        with_port = f"{command} ARGS='--port 9000'"
        assert target.strip() == command
        assert comment in ("", f" another port: {with_port}\n", f" another port: {with_port}")
        return transcripts.run_make(with_port.replace("9000", str(port)), tmp_path, port)

    return run


@pytest.fixture
def endpoint(make):
    """The URL of a service started by ``make serve``."""
    with make("make serve") as url:
        yield url


def test_the_demonstration_serves_a_cloud_and_keeps_no_data(make, tmp_path):
    with make("make demo") as url:

        def ask(path):
            return requests.get(url + path, headers={"X-Auth-Token": "admin"}, timeout=children.PATIENCE).json()

        greeting = (tmp_path / "log").read_text()
        assert re.search("its data in (.*)", greeting).group(1) == "memory"
        names = {provider["name"] for provider in ask("/resource_providers")["resource_providers"]}
        assert {"compute-01", "compute-16-numa1", "gpu-4-numa1-gpu3", "gpu-1-numa0-nic", "storage-pool"} <= names
        assert len(ask("/baremetal/v1/nodes?associated=false")["nodes"]) == 6
        consumers = ask("/v1/consumers?limit=1000")["consumers"]
        assert len(consumers) > 200
        assert {consumer["type"] for consumer in consumers} >= {"INSTANCE", "TRAINING"}
        assert ask("/v1/overview?over_committed=1")["providers"][0]["name"] == "compute-03"
        assert "request_log" not in greeting
        assert [file.name for file in (tmp_path / "var").iterdir()] == [package.ADDRESS_FILE.name]
    assert not list((tmp_path / "var").iterdir())


def section(begin, end):
    """Return the text of the README between two phrases."""
    return PAGES["README.rst"].partition(begin)[2].partition(end)[0]


def steps(text):
    """Return the commands of a console block, each with the output shown below it."""
    pairs = []
    for line in re.sub(r"\\?\n {8}", " ", text).splitlines():
        if line.startswith(PROMPT):
            pairs.append((line.removeprefix(PROMPT), []))
        elif line.startswith("    ") and not line.startswith("    #") and pairs:
            pairs[-1][1].append(line.strip())
    return pairs


def test_the_first_walk_with_curl_prints_the_output_shown(endpoint):
    """Each request runs after the assignments and the function shown before it; ``...`` matches anything."""
    preamble, count = [], 0
    for command, output in steps(section("send requests from another terminal", "docs/api <")):
        if not command.startswith("ask $") and not command.startswith(("ask -X", 'ask "')):
            preamble.append(command.replace("http://127.0.0.1:8778", endpoint))
            continue
        count += 1
        script = "\n".join([*preamble, command])
        done = subprocess.run(
            ["bash", "-euc", script], capture_output=True, text=True, timeout=children.PATIENCE, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        expected = re.escape("".join(output)).replace(re.escape("..."), ".*").replace(r"\ .*", ".*")
        assert re.fullmatch(expected, done.stdout.strip()), f"{command}\n{done.stdout}"
    assert count == 7


def test_the_walk_with_the_openstack_client_prints_the_output_shown(endpoint):
    walk(endpoint, section("With the OpenStack command-line client", "Whole machines"), commands=6)


def test_the_walk_with_machines_prints_the_output_shown(endpoint):
    walk(endpoint, section("Whole machines", "Guarantees"), commands=11)


def walk(endpoint, text, commands):
    openstack = shutil.which("openstack", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert openstack, "python-openstackclient and its plugins are in the extra named test"
    pairs = steps(text)
    assert sum(command.startswith("openstack ") for command, _ in pairs) == commands
    variables = dict(os.environ)
    for command, output in pairs:
        if not command.startswith("openstack "):
            words = shlex.split(command.removeprefix("export "))
            variables |= dict(word.split("=", 1) for word in words)
            variables["OS_ENDPOINT"] = variables["OS_ENDPOINT"].replace("http://127.0.0.1:8778", endpoint)
            continue
        argv = [openstack, *shlex.split(_expand(command, variables))[1:]]
        done = preloaded.client().run([sys.executable, *argv], variables)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        if output:
            assert [line.strip() for line in done.stdout.splitlines()] == output, command


def _expand(command, variables):
    """Return the command with $HOST and $SERVER replaced."""
    for name in ("HOST", "SERVER"):
        command = command.replace(f"${name}", variables.get(name, ""))
    return command


# --- in production ---


@pytest.fixture(scope="module")
def virtual_environment(tmp_path_factory):
    """The virtual environment that the section creates, from a copy of the checkout's files without git."""
    install, *_ = blocks(section("In production", "Contributing\n="))
    files, home = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("opt") / "placement"
    for name in ("setup.cfg", "pyproject.toml", "README.rst", "LICENSE"):
        shutil.copyfile(ROOT / name, files / name)
    for name in ("bin", "etc", "placement"):
        shutil.copytree(ROOT / name, files / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = install.text.replace("/opt/placement", str(home))
    assert command.count(str(home)) == 3
    [block_of_install] = blocks_of(__file__, "docs/install.rst")
    assert block_of_install.text in install.text
    done = subprocess.run(
        ["bash", "-euc", command], cwd=files, env=clean_environment(), capture_output=True, text=True, timeout=900
    )
    if "Failed to establish a new connection" in done.stderr:
        raise servers.Missing("pip reaches no package index, from which it would install the service's requirements")
    assert done.returncode == 0, done.stdout + done.stderr
    return home


def clean_environment():
    """Return an environment that imports nothing from this checkout, and whose python3 is the tests' own."""
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON", "VIRTUAL_ENV"))
    }
    return variables | {"PATH": f"{Path(sys.executable).parent}:{variables['PATH']}"}


@pytest.fixture
def production(backend, virtual_environment, tmp_path):
    """The service that the section starts, on another port and without an Identity service."""
    _, configuration, start = blocks(section("In production", "Contributing\n="))
    text = configuration.text.replace("https://identity.example.org", f"http://127.0.0.1:{children.free_port()}")
    database = sa.make_url(backend.create_database())
    address = f"{database.username}:{database.password}@{database.host}:{database.port}/{database.database}"
    text, replaced = re.subn("placement:secret@db.example.org/placement", address, text)
    assert replaced == 1
    (tmp_path / "placement.conf").write_text(text)
    sync, serve = start.text.replace("\\\n", "").splitlines()
    environment = clean_environment() | {"OS_PLACEMENT_CONFIG_DIR": str(tmp_path)}
    environment["PATH"] = f"{virtual_environment}/bin:{environment['PATH']}"
    subprocess.run(["sh", "-c", sync], cwd=tmp_path, env=environment, timeout=300, check=True)
    port = children.free_port()
    program, *words = shlex.split(serve.replace("127.0.0.1:8778", f"127.0.0.1:{port}"))
    assert program == "uwsgi"
    argv = [f"{virtual_environment}/bin/{program}", *words]
    with contextlib.contextmanager(running.run)(argv, port, tmp_path, environment=environment, cwd=tmp_path) as service:
        yield service
        service.kill()  # uWSGI may wait a minute for the threads of a new worker
    backend.drop_database(database)


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_the_service_for_production_responds(production):
    """The service is configured as described: tokens are validated, and the Bare Metal API is enabled."""
    for path, expected in [("/resource_providers", 401), ("/baremetal/v1/nodes", 401), ("/baremetal", 200)]:
        connection = http.client.HTTPConnection("127.0.0.1", production.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path)
            reply = connection.getresponse()
            assert (reply.status, reply.getheader("Connection")) == (expected, "close"), path
