"""What happens over hours, on clocks that the test moves: expired leases, feed writers declared dead, deleted rows."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import signal

import pytest
import sqlalchemy as sa

from jepsen import catalogue, final_state
from jepsen.clusters.moved_clocks import SimulatedCluster
from jepsen.history import History
from placement.db import feed
from placement.db.schema.tables import change_writers, provider_changes
from tests.load.extensions.claiming import Hosts, claiming, request
from tests.load.storm import Call, Storm, new
from tests.run_length import LONG

#: A short run uses only one kind of server, which depends more on clocks than SQLite.
pytestmark = pytest.mark.parametrize(
    "backend", ["mariadb", "postgresql", "sqlite"] if LONG else ["postgresql"], indirect=True, scope="session"
)
LIFETIME = feed.LIFETIME / 3600
RETENTION = feed.RETENTION / 3600
#: A few more seconds, in hours.
BEYOND = 0.01


@pytest.fixture(scope="module")
def cluster(backend):
    with SimulatedCluster(backend.kind) as running:
        yield running


@pytest.fixture
def storms(cluster):
    """Clients of both services; afterwards each worker's index matches the database, and the rows are consistent."""
    yield [Storm(url) for url in cluster.urls]
    history = History({}, [], [], final_state.read(cluster.database_url, cluster.services))
    checks = catalogue.checks()
    assert [violation for name in ("indices", "soundness", "feed") for violation in checks[name](history)] == []


def rows(cluster, *selected):
    engine = sa.create_engine(cluster.database_url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return connection.execute(sa.select(*selected)).all()


def writers(cluster):
    """Return the ids of all feed writers; ended writers have negative ids."""
    return {row.id for row in rows(cluster, change_writers.c.id)}


def released_leases(cluster):
    """Return the number of expired leases that the services report as released."""
    logs = "".join(service.log.read_text(errors="replace") for service in cluster.services)
    return sum(map(int, re.findall(r"Released (\d+) expired leases", logs)))


def held_consumers(storm, consumers):
    """Return the consumers whose claims are shown."""
    return {consumer for consumer in consumers if storm.ask("GET", f"/v1/claims/{consumer}").status == 200}


@contextlib.contextmanager
def stop_workers(service):
    """Stop all workers of the service for the block."""
    for worker in service.workers:
        os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in service.workers:
            os.kill(worker, signal.SIGCONT)


def test_long_leases_expire_on_time_and_once(cluster, storms):
    first, second = storms
    hours = {hour: [new(), new(), new()] for hour in (1, 2, 5, 24)}
    consumers = [consumer for group in hours.values() for consumer in group]
    hosts, began, released_before = Hosts(first, len(consumers)), cluster.hours, released_leases(cluster)
    for hour, group in hours.items():
        for consumer in group:
            assert first.ask(*claiming(request(hosts.query(), consumer), expires_in=hour * 3600)).status == 200
    assert second.ask(*claiming(request(hosts.query()))).status == 409
    extended, forever = hours[2][0], hours[2][1]
    for step in (0.9, 1 + BEYOND, 1.9, 2 + BEYOND, 4.9, 5 + BEYOND, 7.9, 8 + BEYOND, 23.9, 24 + BEYOND):
        cluster.pass_hours(began + step - cluster.hours)
        if step == 1.9:
            assert second.ask("POST", f"/v1/claims/{extended}/extend", {"expires_in": 6 * 3600}).status == 200
            assert first.ask("POST", f"/v1/claims/{forever}/extend", {"expires_in": None}).status == 200
        ends = {consumer: hour for hour, group in hours.items() for consumer in group} | {extended: 7.9, forever: 1e9}
        active = {consumer for consumer in consumers if ends[consumer] > step}
        assert held_consumers(first, consumers) == held_consumers(second, consumers) == active, step
        # Concurrent searches on both services release expired leases.
        searches = [lambda storm=storm: storm.get(f"/allocation_candidates?{hosts.query()}") for storm in storms]
        first.together(*searches)
        assert sum(hosts.usage().values()) == len(active)
        assert released_leases(cluster) - released_before == len(consumers) - len(active)
    assert first.ask("DELETE", f"/allocations/{forever}").status == 204


@pytest.mark.parametrize("suspended", [True, False], ids=["its host is suspended", "only the process is stopped"])
def test_a_service_declared_dead_loses_no_change(cluster, storms, suspended):
    """Its writers are ended meanwhile; if its host was suspended, even its own clock does not show that."""
    if suspended and cluster.kind == "sqlite":
        pytest.skip("the services of one file are on one host")
    dead, alive = storms
    for storm in storms:
        storm.together(*[storm.provider] * 4)
    old = writers(cluster)
    with stop_workers(cluster.services[0]):
        cluster.pass_hours(LIFETIME + BEYOND, suspended=0 if suspended else None)
        alive.together(*[alive.provider] * 8)
        # Its own writers are new, too; after some minutes they maintain the feed, and end expired writers.
        cluster.pass_hours(0.1, suspended=0 if suspended else None)
        alive.together(*[alive.provider] * 8)
    ended = {-writer for writer in writers(cluster) if writer < 0} & old
    assert ended
    names = [new() for _ in range(8)]
    replies = dead.together(*[Call("POST", "/resource_providers", {"name": name, "uuid": name}) for name in names])
    assert [reply for reply in replies if reply.status != 200] == []
    for storm in storms:
        providers = {provider["uuid"] for provider in storm.get("/resource_providers")["resource_providers"]}
        assert {*names} <= providers
    cluster.pass_hours(0)  # its clock is correct again
    assert not writers(cluster) & ended


def test_workers_catch_up_after_old_rows_are_deleted(cluster, storms):
    """A worker searches after its feed rows are gone, and reads everything again."""
    behind, ahead = storms
    final_state.read(cluster.database_url, cluster.services)  # each worker has an index
    rounds_by_writer: collections.Counter[int] = collections.Counter()
    with stop_workers(cluster.services[0]):
        # Sequentially, so that each worker uses one writer.
        for _ in range(16):
            ahead.provider()
        old_rows = set(rows(cluster, provider_changes))
        for _ in range(3):
            known_rows = set(rows(cluster, provider_changes))
            cluster.pass_hours(RETENTION + BEYOND)
            for _ in range(8):
                ahead.provider()
            rounds_by_writer.update({row.writer_id for row in set(rows(cluster, provider_changes)) - known_rows})
        final_rows = set(rows(cluster, provider_changes))
    newest = {
        row.writer_id: max(other.seq for other in old_rows if other.writer_id == row.writer_id) for row in old_rows
    }
    # A writer records its newest number in its first transaction after a minute, and deletes rows once that is old
    # enough.
    deleting = {writer for writer, rounds in rounds_by_writer.items() if rounds > 1}
    old = {row for row in old_rows if row.writer_id in deleting and row.seq < newest[row.writer_id]}
    assert old
    assert old.isdisjoint(final_rows)
    # The newest row of each writer is kept, so that workers can tell that they missed nothing. Ended writers have
    # negative ids.
    assert {writer for writer in newest if writer > 0} <= {abs(row.writer_id) for row in final_rows}
    assert behind.provider()
