"""Sweeps of expired leases without a search: by a worker after a request, and by the operators' command."""

from __future__ import annotations

import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import webob

from placement import deploy, signals
from placement.cmd import manage
from placement.db.schema.tables import allocations
from placement.http.service import Service
from placement.index.live import LiveIndex
from placement.middleware import lease_sweeps, mount
from placement.objects.claims import lease_sweep, leases, release
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.policy import Policy
from tests import apis, signal_facts, web
from tests.clock import PATIENCE, Clock
from tests.db import lease, sql_hooks
from tests.made import opened

pytestmark = pytest.mark.every_database

HOST = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c013"
ADMIN = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}


@pytest.fixture
def clock(monkeypatch):
    made = Clock(1000.0)
    for module in (lease_sweep, lease_sweeps, mount):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def due(database):
    """Return a function that creates ``number`` consumers whose leases have expired."""
    database.write(
        lambda db: LockedProvider.create(db, uuid=HOST, name="host").replace_inventories([Inventory("VCPU", 1000)])
    )

    def make(number):
        uuids = [str(uuid.uuid4()) for _ in range(number)]
        claims = [Claim(consumer, {HOST: {"VCPU": 1}}, Owner("project", "user")) for consumer in uuids]
        database.write(lambda db: ClaimSet(db, claims).place())
        for consumer in uuids:
            database.write(lambda db: leases.extend(db, consumer, 60))  # noqa: B023
            lease.expire(database, consumer)

    return make


@pytest.fixture
def numbers():
    """Return the published numbers of expired leases."""
    with signal_facts.collect(signals.leases_due) as numbers:
        yield numbers


def service(database, interval=5):
    conf = web.configuration(placement__lease_sweep_interval=interval)
    policy = Policy(conf, deploy.list_rules())
    return deploy.assemble(Service(conf, database, policy, LiveIndex(database), apis.ALL))


def count_allocations(database):
    return len(database.read(lambda db: db.execute(allocations.select()).all()))


def ask(application):
    """Send a request that reads no index, and close the response as a server does."""
    reply = web.ask(application, "GET", "/usages?project_id=x", ADMIN)
    assert (reply.status_int, reply.json["usages"]) == (200, {})


def test_a_worker_sweeps_after_a_request_once_per_interval(database, due, clock, numbers):
    application = service(database)
    due(3)
    ask(application)
    assert (count_allocations(database), numbers) == (3, []), "the interval begins with the worker"
    clock.now += 5
    with sql_hooks.writes(database.engine) as written:
        ask(application)
    assert count_allocations(database) == 0
    assert [statement.split()[:3] for statement in written][:2] == [
        ["DELETE", "FROM", "allocations"],
        ["DELETE", "FROM", "consumers"],
    ]
    assert numbers == [3, 0]
    due(1)
    ask(application)
    assert count_allocations(database) == 1, "not again within the interval"
    clock.now += 5
    ask(application)
    assert (count_allocations(database), numbers) == (0, [3, 0, 1, 0])


def test_the_response_is_sent_before_the_sweep(database, due, clock):
    application = service(database)
    due(1)
    clock.now += 5
    with sql_hooks.writes(database.engine) as written:
        environ = webob.Request.blank("/usages?project_id=x", headers=ADMIN).environ
        reply = application(environ, lambda *_: None)
        assert b"".join(reply)
        assert written == []
        reply.close()
        assert written


def test_no_sweep_follows_a_health_check(database, due, clock):
    application = service(database)
    due(1)
    clock.now += 5
    assert web.ask(application, "GET", "/healthcheck").status_int == 200
    assert count_allocations(database) == 1


def test_a_worker_never_sweeps_with_an_interval_of_zero(database, due, clock):
    application = service(database, 0)
    due(1)
    clock.now += 3600
    ask(application)
    assert count_allocations(database) == 1


def test_a_sweep_that_fails_fails_no_request(database, due, clock, caplog):
    application = service(database)
    due(1)
    clock.now += 5

    def fail(statement):
        if "FOR UPDATE" in statement or statement.startswith("DELETE"):
            raise RuntimeError("planted")

    with sql_hooks.statements(database.engine, fail):
        ask(application)
    assert "Expired leases cannot be released: planted" in caplog.text
    assert count_allocations(database) == 1
    clock.now += 5
    ask(application)
    assert count_allocations(database) == 0


def test_a_sweep_continues_as_long_as_it_releases_leases(database, due, monkeypatch):
    """Transactions that find all expired leases locked end a sweep only if MAX_IDLE of them follow each other."""
    monkeypatch.setattr(release, "BATCH", 1)
    monkeypatch.setattr(lease_sweep, "MAX_IDLE", 2)
    due(3)
    released, release_expired = [], leases.release_expired
    monkeypatch.setattr(leases, "release_expired", lambda *args: release_expired(*args) if len(released) % 2 else 0)
    assert lease_sweep.sweep(database, released=released.append)
    assert (released, count_allocations(database)) == ([0, 1] * 3, 0)


def test_a_sweep_releases_a_batch_even_if_its_time_has_run_out(database, due, monkeypatch):
    """Otherwise a worker that is slow to count the expired leases would never release any."""
    monkeypatch.setattr(release, "BATCH", 1)
    due(2)
    assert not lease_sweep.sweep(database, until=time.monotonic() - 1)
    assert count_allocations(database) == 1


# --- the command ---


@pytest.fixture
def run(database, in_process, tmp_path):
    """Run placement-manage in this process, on the database of the test."""
    path = tmp_path / "placement.conf"
    url = database.url.render_as_string(hide_password=False)
    path.write_text(f"[placement_database]\nconnection = {url}\nmax_retries = 0\n")
    return lambda *words: in_process(manage, "--config-file", str(path), *words)


def numbers_of(done):
    """Return the numbers in the table that the command prints: released, left."""
    return [int(number) for number in re.findall(r"\| +(\d+) +\|", done.out)]


def test_the_command_releases_all_expired_leases(database, due, run):
    due(3)
    done = run("leases", "sweep", "--max-rows", "2")
    assert (done.code, numbers_of(done), count_allocations(database)) == (3, [2, 1], 1)
    done = run("leases", "sweep", "--max-rows", "2")
    assert (done.code, numbers_of(done), count_allocations(database)) == (0, [1, 0], 0)
    done = run("leases", "sweep")
    assert (done.code, numbers_of(done)) == (0, [0, 0])


def test_the_command_refuses_invalid_arguments(run):
    assert run("leases", "sweep", "--max-rows", "0").code == 2
    assert run("leases", "burn").code == 2
    ran = run("leases")
    assert ran.code == 0
    assert ran.out.startswith("usage: placement-manage leases")


def test_concurrent_sweeps_release_each_lease_once(database, due, monkeypatch):
    monkeypatch.setattr(release, "BATCH", 7)
    # No sweep gives up: the others may be slow.
    monkeypatch.setattr(lease_sweep, "MAX_IDLE", 1_000_000)
    monkeypatch.setattr(lease_sweep, "ATTEMPTS", 1000)
    due(60)
    counted = []
    url = database.url.render_as_string(hide_password=False)

    def sweep():
        with opened(url) as own:
            return lease_sweep.sweep(own, released=counted.append)

    with signal_facts.collect(signals.leases_expired) as published, ThreadPoolExecutor(3) as threads:
        assert all(future.result(PATIENCE) for future in [threads.submit(sweep) for _ in range(3)])
    assert (sum(counted), sum(published), count_allocations(database)) == (60, 60, 0)
    _, used = LiveIndex(database).current().column("VCPU").usage()
    assert used.sum() == 0
