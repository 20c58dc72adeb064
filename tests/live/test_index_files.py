"""The index file of a machine, shared by the workers of a service under each web server (docs/deployment.rst)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests import children, running, servers, web_servers
from tests.live.test_web_servers import daemons
from tests.load.storm import Storm, claim, clients
from tests.patient import OPTIONS

pytestmark = [
    # The file does not depend on the kind of database.
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    # Only one process of the run starts them.
    pytest.mark.xdist_group("index files"),
]
MODULE = "tests.eager_renewals"


def uwsgi(*flags):
    """Return a function that starts uWSGI with these flags."""
    return lambda url, options: running.uwsgi(url, 2, options, module=MODULE, flags=flags)


def mod_wsgi(url, options):
    return web_servers.mod_wsgi(url, options, script=web_servers.ROOT / "tests" / "eager_renewals.py")


def placement_serve(url, options):
    return running.embedded(url, options, module=MODULE)


DEPLOYMENTS = {
    "uWSGI, lazy": uwsgi("--enable-threads", "--threads", "3", "--lazy-apps"),
    "uWSGI, forked": uwsgi("--enable-threads", "--threads", "3"),
    "uWSGI, forked, without threads": uwsgi(),
    "mod_wsgi": mod_wsgi,
    "placement-serve": placement_serve,
}


class Machine:
    """A service with an index file, and its clients."""

    def __init__(self, service, directory):
        self.service, self.directory, self.storm = service, directory, Storm(service.url)

    @property
    def file(self):
        [file] = self.directory.glob("*.index")
        return file

    @property
    def workers(self):
        """The ids of the processes that search."""
        return daemons(self.service) if self.service.prefix else self.service.workers

    @property
    def reads(self):
        """How many times a worker has read all providers from the database."""
        logs = [self.service.log, *self.service.directory.glob("*.log")]  # Apache's own log has another name
        return sum(log.read_text().count(" providers into the index in ") for log in logs)

    def used(self, provider):
        """Return the usage of a provider in a search, by any worker."""
        candidates = self.storm.get(f"/allocation_candidates?resources=VCPU:1&in_tree={provider}")
        return candidates["provider_summaries"][provider]["resources"]["VCPU"]["used"]

    def use(self, provider, used):
        """Search until each worker has mapped the newest file, and no other; each search must have this result."""

        def search():
            assert self.storm.together(*[lambda: self.used(provider)] * 6) == [used] * 6
            expected = {(str(self.file), self.file.stat().st_ino)}
            return all(mapped(worker) == expected for worker in self.workers)

        children.until(search, "a worker has not mapped the newest file")

    def replace_worker(self):
        """Kill a worker, and return once its master has replaced it; restart a service without a master."""
        before = self.workers
        worker = secrets.choice(before)
        if worker == self.service.pid:
            self.service.kill()
            self.service.start()
        else:
            os.kill(worker, signal.SIGKILL)
            self.service.wait_until(lambda: worker not in self.workers and len(self.workers) == len(before))


def mapped(process):
    """Return the paths and inodes of the index files that a process has mapped."""
    fields = [line.split(maxsplit=5) for line in Path(f"/proc/{process}/maps").read_text().splitlines()]
    return {(line[5], int(line[4])) for line in fields if ".index" in line[-1]}


@pytest.fixture(scope="module", params=DEPLOYMENTS)
def machine(backend, request):
    """The machine, once each worker uses the file; only one has read the database."""
    url, directory = backend.create_database(), children.run_directory() / f"index-{secrets.token_hex(4)}"
    options = {**OPTIONS, "placement": {"index_directory": directory}}
    with DEPLOYMENTS[request.param](url, options) as service:
        machine = Machine(service, directory)
        machine.use(machine.storm.provider(VCPU=8), 0)
        assert machine.reads == 1
        yield machine
    backend.drop_database(url)


def test_the_file_is_closed_to_other_users(machine):
    assert machine.directory.stat().st_mode & 0o777 == 0o700
    assert machine.file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "restart", [Machine.replace_worker, lambda machine: machine.service.restart()], ids=["worker", "service"]
)
def test_a_worker_that_starts_begins_with_the_file(machine, restart):
    provider = machine.storm.provider(VCPU=8)
    machine.use(provider, 0)
    reads = machine.reads
    restart(machine)
    assert machine.storm.ask(*claim([provider])).status == 204
    machine.use(provider, 1)
    assert machine.reads == reads


def test_a_deleted_directory_is_written_again(machine):
    """Running workers do not need to read the database for that; after a restart, one of them does."""
    provider = machine.storm.provider(VCPU=8)
    machine.use(provider, 0)
    reads = machine.reads
    [lock] = machine.directory.glob("*.lock")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # no worker writes a file
        # A worker may try to lock its file meanwhile, which creates it again.
        shutil.rmtree(machine.directory.rename(machine.directory.with_name("deleted")))

    def is_written():
        assert machine.used(machine.storm.provider(VCPU=8)) == 0
        return [*machine.directory.glob("*.index")]

    machine.service.wait_until(is_written)
    machine.use(provider, 0)
    assert machine.reads == reads
    machine.service.stop()
    shutil.rmtree(machine.directory)
    machine.service.start()
    machine.use(provider, 0)
    assert machine.reads == reads + 1


@contextlib.contextmanager
def claiming(machine):
    """Run clients that claim and then search, until the block ends; each search must show all claims of its client."""
    differences = []

    def send_requests(is_done):
        provider, claims = machine.storm.provider(VCPU=1_000_000), 0
        while not is_done.is_set():
            assert machine.storm.ask(*claim([provider])).status == 204
            claims += 1
            if (used := machine.used(provider)) != claims:
                differences.append((claims, used))

    with clients(send_requests):
        yield
    assert differences == []


def test_searches_show_all_claims_while_workers_change_over_to_new_files(machine):
    provider = machine.storm.provider(VCPU=8)
    reads, newest, changes = machine.reads, {}, Counter()

    def has_changed_over():
        for worker in machine.workers:
            if (files := mapped(worker)) != newest.get(worker):
                newest[worker] = files
                changes[worker] += 1
        return all(changes[worker] > 5 for worker in machine.workers)

    with claiming(machine):
        machine.service.wait_until(has_changed_over)
    machine.use(provider, 0)
    assert machine.reads == reads
