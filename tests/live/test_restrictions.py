"""The service and its commands work under the restrictions of the systemd units (tests/restricted.py)."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys

import pytest

from tests import children, restricted, running, servers, web_servers
from tests.db.db.engine.test_mysqlclient import with_mysqlclient
from tests.live.test_web_servers import reload_commands
from tests.load.storm import Call, Storm, claim, statuses

pytestmark = pytest.mark.xdist_group("web servers")
UNITS = web_servers.SAMPLES / "systemd"


@pytest.fixture(autouse=True)
def _possible():
    restricted.check_possible()


def under(unit, argv):
    """Return a command under the restrictions of a unit, as a user other than root: as root, SQLite calls chown()."""
    return [*web_servers.unprivileged_prefix(), sys.executable, "-m", "tests.restricted", str(UNITS / unit), *argv]


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.sched_setaffinity(0, os.sched_getaffinity(0))",
        "import os; os.chown('/', -1, -1)",
        "import os; os.chroot('/')",
    ],
)
def test_a_system_call_forbidden_by_the_unit_is_refused(code):
    done = subprocess.run(under("placement.service", [sys.executable, "-c", code]), timeout=children.PATIENCE)
    assert done.returncode == -signal.SIGSYS


def test_memory_is_not_writable_and_executable():
    code = "import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)"
    argv = under("placement.service", [sys.executable, "-c", code])
    assert "PermissionError" in subprocess.run(argv, timeout=children.PATIENCE, capture_output=True, text=True).stderr


@pytest.fixture
def restricted_uwsgi(database_url):
    """The service, started by etc/uwsgi/placement.ini, with metrics."""
    metrics = children.run_directory() / f"metrics-{secrets.token_hex(4)}"
    # With a limit of threads, requests are refused if the database is busy for five seconds, as on a slow machine.
    options = {"metrics": {"directory": metrics}, "placement_database": {"max_threads": 0}}
    argv, port, directory = web_servers.uwsgi_command(database_url, options)
    argv = under("placement.service", argv[argv.index(running.uwsgi_binary()) :])
    yield from running.run(argv, port, directory, cwd=web_servers.ROOT)


@pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True)
def test_the_service_responds_reloads_and_stops(restricted_uwsgi):
    service = restricted_uwsgi
    storm = Storm(service.url)
    service.wait_until_loaded()
    provider, before = storm.provider(VCPU=100), service.workers
    storm.together(
        *[claim([provider]) for _ in range(8)], *[Call("GET", "/allocation_candidates?resources=VCPU:1")] * 8
    )
    check, begin = reload_commands(service)
    environment = {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(service.directory)}
    for command in ([sys.executable, *check[1:]], begin):
        subprocess.run(under("placement.service", command), check=True, timeout=300, env=environment)
    service.wait_until(lambda: "chain reloading complete" in service.log.read_text())
    service.wait_until(lambda: not any(map(children.alive, before)))
    storm.together(*[claim([provider]) for _ in range(8)])
    os.kill(service.pid, signal.SIGTERM)
    service.wait_until(lambda: "goodbye to uWSGI" in service.log.read_text())
    assert set(statuses([event.answer for event in storm.history])) == {200, 204}
    assert [*(service.directory / "index").glob("*.index")]
    assert "signal 31" not in service.log.read_text(), "uWSGI had to replace a worker: a system call was refused"


def test_the_commands_run_with_every_driver(database_url, tmp_path):
    urls = [database_url]
    if database_url.startswith("mysql"):
        urls.append(with_mysqlclient(database_url).render_as_string(hide_password=False))
    for url in urls:
        (tmp_path / "placement.conf").write_text(f"[placement_database]\nconnection = {url}\n")
        environment = {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(tmp_path)}
        run = {"cwd": web_servers.package_root(), "env": environment, "timeout": 300}
        for words in (["db", "sync"], ["leases", "sweep"]):
            argv = under("placement-leases.service", [sys.executable, "-m", "placement.cmd.manage", *words])
            done = subprocess.run(argv, capture_output=True, text=True, **run)
            assert done.returncode == 0, done
