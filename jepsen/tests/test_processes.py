"""Workers, services and databases that are killed, paused and restarted: the effect on clients, and recovery."""

from __future__ import annotations

import pytest

from jepsen.nemeses import processes
from jepsen.tests.nemesis_observer import SERVERS, observe
from tests.run_length import LONG

pytestmark = [pytest.mark.xdist_group("nemeses"), pytest.mark.parametrize("cluster", SERVERS, indirect=True)]


def test_a_killed_worker_is_replaced(cluster):
    old = [{*service.workers} for service in cluster.services]
    observation = observe(cluster, processes.KillWorker())
    assert {*observation.detail} == {"service", "worker"}
    killed, worker = observation.detail["service"], observation.detail["worker"]
    service, count = cluster.services[killed], len(old[killed])
    service.wait_until(lambda: worker not in (now := service.workers) and len(now) == count)
    new = [{*service.workers} for service in cluster.services]
    assert old[killed] - new[killed] == {worker}
    assert len(new[killed]) == len(old[killed])
    assert new[1 - killed] == old[1 - killed]
    assert all(operation.service == killed for operation in observation.failures)


def test_a_paused_worker_continues(cluster):
    old = [service.workers for service in cluster.services]
    observation = observe(cluster, processes.PauseWorker(), answering=lambda detail: [1 - detail["service"]])
    assert observation.of(observation.detail["service"]).delayed
    assert observation.of(1 - observation.detail["service"]).within
    assert [service.workers for service in cluster.services] == old


def test_a_killed_service_is_restarted(cluster):
    observation = observe(cluster, processes.KillService())
    killed = observation.detail["service"]
    assert observation.of(killed).failures
    assert not [operation for operation in observation.of(killed).within if operation.succeeded]
    assert not observation.of(1 - killed).failures


@pytest.mark.skipif(not LONG, reason="a long run: make test-long")
def test_a_reload_replaces_workers_without_losing_requests(cluster):
    old = [{*service.workers} for service in cluster.services]
    observation = observe(cluster, processes.ReloadService())
    new = [{*service.workers} for service in cluster.services]
    assert not observation.failures
    reloaded = observation.detail["service"]
    assert not old[reloaded] & new[reloaded]
    assert new[1 - reloaded] == old[1 - reloaded]


@pytest.mark.parametrize("nemesis", [processes.KillDatabase, processes.RestartDatabase])
def test_writes_are_refused_while_the_database_restarts(cluster, nemesis):
    old, workers = cluster.servers[0].child.pid, [service.workers for service in cluster.services]
    observation = observe(cluster, nemesis())
    assert cluster.servers[0].child.pid != old
    assert {operation.service for operation in observation.failures} == {0, 1}
    assert not [operation for operation in observation.within if operation.succeeded]
    assert {operation.status for operation in observation.failures} == {503}
    assert [service.workers for service in cluster.services] == workers


def test_writes_wait_for_a_paused_database(cluster):
    observation = observe(cluster, processes.PauseDatabase())
    assert {operation.service for operation in observation.delayed} == {0, 1}
    assert not [operation for operation in observation.within if operation.succeeded]
