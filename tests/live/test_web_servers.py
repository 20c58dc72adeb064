"""The service under uWSGI and Apache, configured by the samples in etc/."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import bcrypt
import pytest

from tests import children, preloaded, servers, web_servers
from tests.baremetal_clients import Clients, Commands, unique
from tests.docs.run_by import blocks_of
from tests.load.storm import Storm, claim, clients, statuses

pytestmark = [
    # Web servers do not depend on the kind of database.
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    # Only one process of the run starts them.
    pytest.mark.xdist_group("web servers"),
]
SERVERS = ("uwsgi", "mod_wsgi", "mod_proxy_uwsgi")
NAME, PASSWORD = "nova", "s3cret"
NOVA = {"Authorization": f"Basic {base64.b64encode(f'{NAME}:{PASSWORD}'.encode()).decode()}"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def service_under(backend):
    """Return a function that returns the service under a web server, started on first use; it requires passwords."""
    passwords = children.run_directory() / "htpasswd-of-web-servers"
    passwords.write_text(f"{NAME}:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
    options = {
        "api": {"auth_strategy": "http_basic"},
        "baremetal": {"enabled": True},
        "placement_database": {"max_threads": 0},  # no request is refused because of a delayed server
        "oslo_middleware": {"http_basic_auth_user_file": passwords, "enable_proxy_headers_parsing": True},
    }
    url, running = backend.create_database(), {}
    with contextlib.ExitStack() as stack:

        def start(name):
            if name not in running:
                arguments = [start("uwsgi")] if name == "mod_proxy_uwsgi" else [url, options]
                running[name] = stack.enter_context(getattr(web_servers, name)(*arguments))
            return running[name]

        yield start
    backend.drop_database(url)


def ask(service, method, path, body=None, **headers):
    """Return status, headers and JSON of the response."""
    headers = {**NOVA, "OpenStack-API-Version": "placement 1.39", **headers}
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=children.PATIENCE)
    with contextlib.closing(connection):
        connection.request(method, service.prefix + path, json.dumps(body) if body else None, headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, json.loads(reply.read() or "null")


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_the_openstack_command_works_through_a_web_server(service, openstack_command):
    identity = ["--os-auth-type", "http_basic", "--os-endpoint", service.url, "--os-username", NAME]
    identity += ["--os-password", PASSWORD, "--os-placement-api-version", "1.39"]

    def openstack(command):
        done = openstack_command([*identity, *command.split(), "-f", "json"])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    host = openstack(f"resource provider create host-of-{service.port}")["uuid"]
    openstack(f"resource provider inventory set {host} --resource VCPU=8")
    owner = "--project-id demo --user-id alice --consumer-type INSTANCE"
    [allocation] = openstack(f"resource provider allocation set {uuid.uuid4()} {owner} --allocation rp={host},VCPU=2")
    assert allocation["resources"] == {"VCPU": 2}
    assert openstack(f"resource provider usage show {host}") == [{"resource_class": "VCPU", "usage": 2}]


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_a_load_balancer_needs_no_password(service):
    """The root responds with and without a slash, as does the health check."""
    for path in ("/", "", "/healthcheck"):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=children.PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", service.prefix + path)
            assert connection.getresponse().status == 200, path
    assert ask(service, "GET", "/traits", Authorization="Basic bm92YTp3cm9uZw==")[0] == 401


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_links_lead_back_through_the_web_server(service):
    name = f"linked-{service.port}"
    status, headers, created = ask(service, "POST", "/resource_providers", {"name": name}, **JSON)
    assert status == 200
    path = f"{service.prefix}/resource_providers/{created['uuid']}"
    assert created["links"][0]["href"] == path
    assert headers["Location"] == f"http://127.0.0.1:{service.port}{path}"
    outside = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "placement.example.org"}
    _, headers, _ = ask(service, "PUT", "/traits/CUSTOM_LINKED", **outside)
    assert headers["Location"] == f"https://placement.example.org{service.prefix}/traits/CUSTOM_LINKED"


@pytest.mark.filterwarnings("ignore")  # warnings of the SDK
@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_the_bare_metal_clients_work_below_the_prefix(service):
    clients = Clients(f"{service.url}/baremetal")
    identity = ("--os-auth-type", "http_basic", "--os-endpoint", clients.url)
    openstack = Commands(*identity, "--os-username", NAME, "--os-password", PASSWORD)
    baremetal = clients.connect(auth_type="http_basic", username=NAME, password=PASSWORD).baremetal
    kind = unique("gpu")
    uuids = [openstack.show(f"allocation create --resource-class {kind}")["uuid"] for _ in range(2)]
    assert [allocation.id for allocation in baremetal.allocations(resource_class=kind, limit=1)] == uuids
    links = {link["rel"]: link["href"] for link in baremetal.get_allocation(uuids[0]).links}
    assert links == {
        "self": f"{clients.url}/v1/allocations/{uuids[0]}",
        "bookmark": f"{clients.url}/allocations/{uuids[0]}",
    }
    openstack.do(f"allocation delete {uuids[0]} {uuids[1]}")


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_a_web_server_forwards_long_queries_and_encoded_paths(service):
    aggregates = ",".join([str(uuid.uuid4())] * 500)
    status, _, body = ask(service, "GET", f"/resource_providers?member_of=in:{aggregates}")
    assert (status, body) == (200, {"resource_providers": []})
    for path in ("/traits/", "/traits/a%2Fb", "/traits/%C3%A9"):
        status, headers, body = ask(service, "GET", path)
        assert (status, headers["Content-Type"]) == (404, "application/json"), path
        assert body["errors"][0]["request_id"] == headers["x-openstack-request-id"]


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_the_end_of_a_kept_connection_is_announced(service):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=children.PATIENCE)
    connection.auto_open = False
    with contextlib.closing(connection):
        for _ in range(4):
            if connection.sock is None:
                connection.connect()
            connection.request("GET", f"{service.prefix}/")
            reply = connection.getresponse()
            assert (reply.status, len(reply.read()) > 0) == (200, True)


# --- reloads ---------------------------------------------------------------------------------------------------------


def reload_by_unit(service_under, _name):
    """Reload like ``systemctl reload placement``, which replaces all workers, one after another."""
    uwsgi = service_under("uwsgi")
    check, begin = reload_commands(uwsgi)
    assert run_check(check, uwsgi.directory).returncode == 0
    return reload_chain(uwsgi, lambda: subprocess.run(begin, check=True, timeout=300))


def reload_chain(uwsgi, begin):
    """Begin to reload all workers, one after another; return a function that returns whether all are replaced."""
    sign = "chain reloading complete"
    uwsgi.wait_until_loaded()
    before, signs = uwsgi.workers, uwsgi.log.read_text().count(sign)
    begin()
    return lambda: uwsgi.log.read_text().count(sign) > signs and not any(map(children.alive, before))


def reload_by_fifo(service_under, _name):
    """Reload all workers at once."""
    uwsgi, sign = service_under("uwsgi"), "WSGI app 0 "
    uwsgi.wait_until_loaded()
    before, signs = uwsgi.workers, uwsgi.log.read_text().count(sign)
    run_line("uwsgi.fifo", "echo r ", uwsgi.directory)
    return lambda: uwsgi.log.read_text().count(sign) >= signs + 2 and not any(map(children.alive, before))


def reload_commands(uwsgi):
    """Return the reload commands of the systemd unit, each a list of words."""
    paths = {"/opt/placement": sys.prefix, "/run/placement": str(uwsgi.directory)}
    unit = web_servers.fill_sample("systemd/placement.service", paths)
    commands = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecReload=")]
    assert len(commands) == 2
    return [shlex.split(command) for command in commands]


def run_check(command, directory):
    """Return the output of the unit's check of the configuration, under this Python."""
    assert command[0] == f"{sys.prefix}/bin/python"
    environment = {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(directory)}
    return preloaded.service().run([sys.executable, *command[1:]], environment)


def reload_apache(service_under, name):
    """Reload like ``apachectl graceful``."""
    apache = service_under(name)
    before = apache.workers
    os.kill(apache.pid, signal.SIGUSR1)
    return lambda: apache.workers and not any(map(children.alive, before))


def reload_mod_wsgi(service_under, name):
    """Reload by a signal to the processes of this Apache only."""
    apache = service_under(name)
    before = daemons(apache)
    assert len(before) == 2
    run_line("pkill", "pkill ", apache.directory, f"pkill --parent {apache.pid} ")
    return lambda: len(daemons(apache)) == 2 and not any(map(children.alive, before))


def run_line(text, begin, directory, begin_instead=None):
    """Run the line with a prefix, from the block of docs/deployment.rst that contains a text, in a directory."""
    (block,) = blocks_of(__file__, "docs/deployment.rst", text=text)
    (line,) = (line for line in block.text.splitlines() if line.startswith(begin))
    line = line.replace("/run/placement", str(directory)).replace(begin, begin_instead or begin)
    if shutil.which(begin.split()[0]) is None:
        raise servers.Missing(f"{begin} is not installed: `make servers` installs it")
    subprocess.run(["sh", "-c", line], check=True, timeout=children.PATIENCE)


def daemons(apache):
    """Return the ids of the processes in which mod_wsgi runs the service."""
    return [id_ for id_ in apache.workers if title(id_).startswith("(wsgi:placement)")]


def title(process):
    with contextlib.suppress(OSError):  # it has ended in the meantime
        return Path(f"/proc/{process}/cmdline").read_text()
    return ""


RELOADS = {
    "uWSGI, one worker after another": ("uwsgi", reload_by_unit),
    "uWSGI behind Apache, all at once": ("mod_proxy_uwsgi", reload_by_fifo),
    "Apache before uWSGI": ("mod_proxy_uwsgi", reload_apache),
    "mod_wsgi": ("mod_wsgi", reload_mod_wsgi),
}


@contextlib.contextmanager
def asking(storm, provider):
    """Run clients that claim and read, one request after another, until the block ends."""

    def send_requests(is_done):
        while not is_done.is_set():
            storm.ask(*claim([provider]))
            storm.ask("GET", f"/resource_providers/{provider}/usages")

    with clients(send_requests):
        yield


@pytest.mark.parametrize(("service", "reload"), RELOADS.values(), ids=RELOADS, indirect=["service"])
def test_a_reload_loses_no_request(service, service_under, reload, request):
    storm = Storm(service.url, NOVA)
    provider = storm.provider(VCPU=1_000_000)
    storm.history.clear()
    with asking(storm, provider):
        service.wait_until(lambda: len(storm.history) > 10)
        service.wait_until(reload(service_under, request.node.callspec.params["service"]))
        sent = len(storm.history)
        service.wait_until(lambda: len(storm.history) > sent + 10)
    counts = statuses([event.answer for event in storm.history])
    assert set(counts) == {200, 204}, counts
    assert storm.usage(provider) == counts[204]


@pytest.mark.parametrize("service", ["uwsgi"], indirect=True)
def test_a_reload_ends_without_further_requests(service):
    """Otherwise idle workers run until they are killed, after ``worker-reload-mercy``."""
    before = service.log.read_text()
    service.wait_until(reload_chain(service, lambda: run_line("uwsgi.fifo", "echo c ", service.directory)))
    assert "NO MERCY" not in service.log.read_text().removeprefix(before)


@pytest.mark.parametrize("service", ["uwsgi"], indirect=True)
def test_the_check_before_a_reload_refuses_an_invalid_configuration(service, tmp_path):
    (tmp_path / "placement.conf").write_text("[placement_database]\nconnection = sqlite://\nmax_retries = many\n")
    check, _ = reload_commands(service)
    done = run_check(check, tmp_path)
    assert done.returncode == 22
    assert "max_retries" in done.stderr.splitlines()[-1]
