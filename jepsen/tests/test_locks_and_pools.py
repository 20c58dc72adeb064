"""Foreign locks and a lack of connections: their effect on clients, and recovery."""

from __future__ import annotations

import random

import pytest
import sqlalchemy as sa

from jepsen.nemeses.locks import LockRows
from jepsen.nemeses.pools import PoolOfOne, TakeConnections
from jepsen.tests.nemesis_observer import SERVERS, observe

pytestmark = [pytest.mark.xdist_group("nemeses"), pytest.mark.parametrize("cluster", SERVERS, indirect=True)]


def test_writes_wait_for_a_locked_table(cluster):
    seed = next(seed for seed in range(10) if random.Random(seed).randrange(3) == 0)
    seen = observe(cluster, LockRows(), seed)
    assert seen.detail == {"table": "resource_providers"}
    assert {operation.service for operation in seen.waited} == {0, 1}
    assert not seen.within
    assert not seen.failed


def test_a_service_works_with_a_pool_of_one(cluster):
    before = [(service.directory / "placement.conf").read_text() for service in cluster.services]
    seen = observe(cluster, PoolOfOne(), answering=lambda detail: [detail["service"]])
    alone = seen.detail["service"]
    assert [operation for operation in seen.of(alone).within if operation.succeeded]
    assert not seen.of(1 - alone).failed
    assert [(service.directory / "placement.conf").read_text() for service in cluster.services] == before


def test_writes_are_refused_without_connections(cluster):
    seen = observe(cluster, TakeConnections())
    assert seen.failed
    assert {operation.status for operation in seen.failed} == {503}
    with sa.create_engine(cluster.database_url, poolclass=sa.NullPool).connect() as connection:
        connection.exec_driver_sql("SELECT 1")
