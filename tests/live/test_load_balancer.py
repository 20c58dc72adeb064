"""haproxy as in etc/haproxy/placement.cfg, in front of two services."""

from __future__ import annotations

import contextlib
import csv
import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

from tests import children, servers, web_servers
from tests.caller import ADMIN
from tests.certificates import Authority
from tests.docs.run_by import blocks_of
from tests.live.test_web_servers import asking, reload_commands
from tests.load.storm import Storm, statuses

pytestmark = [
    # Web servers do not depend on the kind of database.
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("web servers"),
]
OPTIONS = {
    "oslo_middleware": {"enable_proxy_headers_parsing": True},
    "placement_database": {"max_threads": 0},  # no request is refused because of a delayed server
}
#: Headers about the client's connection that haproxy must not accept from the client.
FORGED = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.example.org",
    "X-Forwarded-Prefix": "/evil",
    "Forwarded": "proto=https;host=evil.example.org",
}


@pytest.fixture(scope="module")
def database(backend):
    url = backend.create_database()
    yield url
    backend.drop_database(url)


@pytest.fixture(scope="module")
def first(database):
    with web_servers.uwsgi(database, OPTIONS) as service:
        yield service


@pytest.fixture(scope="module")
def second(database):
    with web_servers.uwsgi(database, OPTIONS) as service:
        yield service


@pytest.fixture
def mortal(database):
    """A service that the test may kill."""
    with web_servers.uwsgi(database, OPTIONS) as service:
        yield service


def command(proxy, words, name="admin.sock"):
    """Return the output of a command on one of haproxy's sockets."""
    with socket.socket(socket.AF_UNIX) as admin:
        admin.connect(str(proxy.directory / name))
        admin.sendall(f"{words}\n".encode())
        admin.shutdown(socket.SHUT_WR)  # the master's socket waits for more commands
        return b"".join(iter(lambda: admin.recv(65536), b"")).decode()


def status(proxy, server):
    """Return the state of one of the two services according to haproxy's checks, and the number of its requests."""
    row = statistics(proxy, server)
    return row["status"], int(row["stot"])


def is_used_again(proxy, storm, before):
    """Send a request, which must succeed; return whether the second service has had more than ``before`` requests."""
    assert storm.ask("GET", "/resource_providers").status == 200
    return status(proxy, "controller2")[1] > before


def requests_in_progress(proxy, server):
    return int(statistics(proxy, server)["scur"])


def statistics(proxy, server):
    rows = csv.DictReader(command(proxy, "show stat").removeprefix("# ").splitlines())
    [row] = [row for row in rows if (row["pxname"], row["svname"]) == ("placement", server)]
    return row


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def location_of(connection, **headers):
    """Return the header Location of the response to a request for a trait."""
    with contextlib.closing(connection):
        connection.request(
            "PUT", "/traits/CUSTOM_LOCATED", headers={**ADMIN, "OpenStack-API-Version": "placement 1.39", **headers}
        )
        reply = connection.getresponse()
        assert reply.status in (201, 204), reply.read()
        return reply.headers["Location"]


@pytest.mark.parametrize("secured", [False, True])
def test_haproxy_accepts_the_sample(backend, tmp_path, secured):
    binary = web_servers.haproxy_binary()
    text = (web_servers.SAMPLES / "haproxy" / "placement.cfg").read_text()
    if secured:
        text = web_servers.with_tls(text, 8779, bundle(Authority(tmp_path).issue("placement.example.org")))
        assert " ssl crt " in text
    (tmp_path / "haproxy.cfg").write_text(text)
    done = subprocess.run(
        [binary, "-c", "-f", str(tmp_path / "haproxy.cfg")], capture_output=True, text=True, timeout=children.PATIENCE
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "Configuration file is valid", "")


def test_links_do_not_follow_headers_of_clients(first):
    with web_servers.haproxy(first) as proxy:
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=children.PATIENCE)
        assert location_of(connection, **FORGED) == f"http://127.0.0.1:{proxy.port}/traits/CUSTOM_LOCATED"


def test_with_tls_links_are_https(first, tmp_path):
    authority, other_authority = Authority(tmp_path), Authority(tmp_path, "other")
    port, file = children.free_port(), bundle(authority.issue("127.0.0.1"))
    with web_servers.haproxy(first, secured=(port, file)):

        def connection(authority):
            context = ssl.create_default_context(cafile=authority.certificate)
            return http.client.HTTPSConnection("127.0.0.1", port, timeout=children.PATIENCE, context=context)

        forged = {**FORGED, "X-Forwarded-Proto": "http"}
        assert location_of(connection(authority), **forged) == f"https://127.0.0.1:{port}/traits/CUSTOM_LOCATED"
        with pytest.raises(ssl.SSLCertVerificationError):
            location_of(connection(other_authority))


def bundle(files):
    """Return a file with a certificate and its key, as haproxy requires."""
    certificate, key = files
    combined = certificate.with_suffix(".both")
    combined.write_bytes(certificate.read_bytes() + key.read_bytes())
    return combined


def test_a_reload_of_a_service_loses_no_request(first, second):
    with web_servers.haproxy(first, second) as proxy:
        storm = Storm(proxy.url)
        provider = storm.provider(VCPU=1_000_000)
        storm.history.clear()
        second.wait_until_loaded()
        before, (_, begin) = second.workers, reload_commands(second)
        with asking(storm, provider):
            proxy.wait_until(lambda: len(storm.history) > 10)
            subprocess.run(begin, check=True, timeout=300)
            proxy.wait_until(lambda: "chain reloading complete" in second.log.read_text())
            proxy.wait_until(lambda: not any(map(children.alive, before)))
            sent = len(storm.history)
            proxy.wait_until(lambda: len(storm.history) > sent + 10)
    counts = statuses([event.answer for event in storm.history])
    assert set(counts) == {200, 204}, counts
    assert Storm(first.url).usage(provider) == counts[204]


def master_is_ready(proxy):
    """Whether the master process of haproxy answers on its socket."""
    try:
        return "worker" in command(proxy, "show proc", "master.sock")
    except (ConnectionError, FileNotFoundError):
        return False


def test_a_reload_of_haproxy_loses_no_request(first):
    with web_servers.haproxy(first) as proxy:
        storm = Storm(proxy.url)
        provider = storm.provider(VCPU=1_000_000)
        storm.history.clear()
        before = proxy.workers
        with asking(storm, provider):
            proxy.wait_until(lambda: len(storm.history) > 10)
            # The worker accepts connections before the master handles signals: an earlier SIGUSR2 would be lost.
            proxy.wait_until(lambda: master_is_ready(proxy))
            os.kill(proxy.pid, signal.SIGUSR2)
            proxy.wait_until(lambda: not any(map(children.alive, before)))
            sent = len(storm.history)
            proxy.wait_until(lambda: len(storm.history) > sent + 10)
    counts = statuses([event.answer for event in storm.history])
    assert set(counts) == {200, 204}, counts


def test_killing_a_service_loses_only_the_requests_that_it_had_begun(first, mortal):
    with web_servers.haproxy(first, mortal) as proxy:
        storm = Storm(proxy.url)
        provider = storm.provider(VCPU=1_000_000)
        storm.history.clear()
        with asking(storm, provider):
            proxy.wait_until(lambda: len(storm.history) > 10)
            mortal.kill()
            # Until its last thread has ended, the service accepts connections, which end with it.
            proxy.wait_until(lambda: not listens(mortal.port))
            killed = time.monotonic()
            proxy.wait_until(lambda: status(proxy, "controller2")[0] == "DOWN")
            sent = len(storm.history)
            proxy.wait_until(lambda: len(storm.history) > sent + 10)
    later = [event.answer for event in storm.history if event.began > killed]
    assert set(statuses(later)) == {200, 204}, statuses(later)


def test_the_log_names_requests_that_fail(mortal):
    with web_servers.haproxy(mortal) as proxy:
        storm = Storm(proxy.url)
        assert storm.ask("GET", "/traits").status == 200
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=children.PATIENCE)
        with contextlib.closing(connection):
            os.killpg(mortal.pid, signal.SIGSTOP)
            proxy.wait_until(lambda: all(map(children.is_stopped, mortal.workers)))
            connection.request("GET", "/resource_classes", headers=ADMIN)
            proxy.wait_until(lambda: requests_in_progress(proxy, "controller1") == 1)
            mortal.kill()
            assert connection.getresponse().status == 502
        proxy.wait_until(lambda: '"GET /resource_classes ' in proxy.log.read_text())
    assert '"GET /traits ' not in proxy.log.read_text()


def test_a_service_that_does_not_respond_is_taken_out_until_it_does(first, second):
    with web_servers.haproxy(first, second) as proxy, frozen(second):
        proxy.wait_until(lambda: status(proxy, "controller2")[0] == "DOWN")
        before = status(proxy, "controller2")[1]
        storm = Storm(proxy.url)
        assert {storm.ask("GET", "/resource_providers").status for _ in range(10)} == {200}
        assert status(proxy, "controller2")[1] == before
        os.killpg(second.pid, signal.SIGCONT)
        proxy.wait_until(lambda: status(proxy, "controller2")[0] == "UP")
        proxy.wait_until(lambda: is_used_again(proxy, storm, before))


@contextlib.contextmanager
def frozen(service):
    os.killpg(service.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(service.pid, signal.SIGCONT)


def test_a_host_is_taken_out_by_hand(first, second):
    """As described for upgrades in docs/deployment.rst: the host gets no new requests until it is ready again."""
    if shutil.which("socat") is None:
        raise servers.Missing("socat is not installed: `make servers` installs it")
    with web_servers.haproxy(first, second) as proxy:
        storm = Storm(proxy.url)
        (block,) = blocks_of(__file__, "docs/deployment.rst")
        text = block.text.replace("controller1", "controller2").replace("/run/haproxy", str(proxy.directory))
        drain, ready = text.splitlines()
        subprocess.run(["sh", "-c", drain], check=True, timeout=children.PATIENCE)
        state, before = status(proxy, "controller2")
        assert state.startswith("DRAIN")
        assert {storm.ask("GET", "/resource_providers").status for _ in range(10)} == {200}
        assert status(proxy, "controller2")[1] == before
        subprocess.run(["sh", "-c", ready], check=True, timeout=children.PATIENCE)
        proxy.wait_until(lambda: is_used_again(proxy, storm, before))
