"""Stopping web servers that run by the samples of etc/, with a signal to all their processes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sqlite3
import threading
from pathlib import Path

import pytest

from tests import children, running, servers, web_servers
from tests.children import until
from tests.load.storm import Storm, claim, statuses
from tests.run_length import LONG

pytestmark = [
    # Web servers do not depend on the kind of database.
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("web servers"),
]
OPTIONS = {
    "DEFAULT": {"debug": True, "default_log_levels": "alembic=WARN"},
    # With a limit, further claims are refused once the test has held its lock for five seconds, on a busy machine.
    "placement_database": {"max_threads": 0},
}
#: The first line of a request in the log; a request that still waits in the socket has not logged it.
BEGUN = "Starting request: "
#: Workers of the sample as tests start it, and threads of each.
WORKERS = 2
THREADS = int(
    re.search(r"^threads = (\d+)$", (web_servers.SAMPLES / "uwsgi" / "placement.ini").read_text(), re.MULTILINE)[1]
)
#: The master's log message about a worker that hangs and is killed.
HANGS = "NO MERCY"


@pytest.fixture
def uwsgi(database_url):
    """Return a function that starts uWSGI by its sample, with every worker loaded."""
    with contextlib.ExitStack() as stack:

        def start():
            service = stack.enter_context(web_servers.uwsgi(database_url, OPTIONS))
            service.wait_until(lambda: service.log.read_text().count("WSGI app 0 ") == WORKERS)
            service.wait_until(lambda: all(threads(worker) >= THREADS for worker in service.workers))
            return service

        yield start


def threads(process):
    return len(os.listdir(f"/proc/{process}/task"))


def has_pending_sigterm(process):
    """Whether SIGTERM was sent to a process that has not received it yet."""
    with contextlib.suppress(OSError):  # it has ended
        pending = re.search(r"^ShdPnd:\t(\w+)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)[1]
        return bool(int(pending, 16) & 1 << signal.SIGTERM - 1)
    return False


def test_a_worker_has_only_its_own_threads(uwsgi):
    """A thread unknown to uWSGI could receive a signal."""
    service = uwsgi()
    storm = Storm(service.url)
    storm.provider(VCPU=1)
    storm.together(*[lambda: storm.get("/allocation_candidates?resources=VCPU:1")] * 8)
    assert [threads(worker) for worker in service.workers] == [THREADS] * WORKERS


def test_a_server_in_one_process_has_only_its_own_threads(database_url):
    with running.embedded(database_url) as service:
        storm = Storm(service.url)
        storm.provider(VCPU=1)
        storm.get("/allocation_candidates?resources=VCPU:1")
        assert threads(service.pid) == 1 + 8  # one thread that accepts, and --threads


#: uWSGI's log messages at its start: its first hook, its workers, and the first worker that has loaded the service.
START_MESSAGES = ["(asap)", "spawned uWSGI worker 1 ", "spawned uWSGI worker 2 ", "WSGI app 0 "]


@pytest.mark.parametrize(
    ("message", "send"),
    [
        # A short run tests each message with only one of the two functions, alternately.
        pytest.param(
            text, send, id=f"{text.strip()}-{send.__name__}", marks=[pytest.mark.long] if (at + to) % 2 else []
        )
        for at, text in enumerate(START_MESSAGES)
        for to, send in enumerate((os.kill, os.killpg))
    ],
)
def test_a_stop_during_the_start_ends_the_server(database_url, message, send):
    """uWSGI alone would ignore SIGTERM until its workers run, and then wait for one that never finishes loading."""
    argv, _, directory = web_servers.uwsgi_command(database_url, OPTIONS)
    log, environment = directory / "log", {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(directory)}
    master = children.Child(argv, log, signal.SIGTERM, env=environment)
    master.wait_until(lambda: message in log.read_text())
    send(master.pid, signal.SIGTERM)
    until(lambda: master.ended, log.read_text())
    until(lambda: not children.descendants(master.pid))
    master.kill()


@pytest.mark.parametrize("_time", range(20 if LONG else 1))
def test_a_stop_under_load_completes_the_requests_that_have_begun(uwsgi, database_url, _time):
    """When the signal arrives, claims wait for the lock of another writer, and get it afterwards."""
    service = uwsgi()
    storm = Storm(service.url)
    provider = storm.provider(VCPU=1_000_000)
    begun_before = service.log.read_text().count(BEGUN)
    storm.history.clear()
    claims = [lambda: storm.ask(*claim([provider]))] * WORKERS * THREADS
    clients = threading.Thread(target=storm.together, args=claims)
    with contextlib.closing(sqlite3.connect(Path(database_url.removeprefix("sqlite:///")))) as writer:
        writer.execute("BEGIN IMMEDIATE")
        clients.start()
        service.wait_until(lambda: service.log.read_text().count(BEGUN) == begun_before + len(claims))
        os.killpg(service.pid, signal.SIGTERM)
        service.wait_until(lambda: not any(map(has_pending_sigterm, [service.pid, *service.workers])))
        writer.rollback()
    until(lambda: not children.alive(service.pid))
    clients.join()
    assert HANGS not in service.log.read_text()
    assert statuses([event.answer for event in storm.history]) == {204: len(claims)}
