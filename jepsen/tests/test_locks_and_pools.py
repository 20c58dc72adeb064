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
    observation = observe(cluster, LockRows(), seed)
    assert observation.detail == {"table": "resource_providers"}
    assert {operation.service for operation in observation.delayed} == {0, 1}
    assert not observation.within
    assert not observation.failures


def test_a_service_works_with_a_pool_of_one_connection(cluster):
    configurations = [(service.directory / "placement.conf").read_text() for service in cluster.services]
    observation = observe(cluster, PoolOfOne(), answering=lambda detail: [detail["service"]])
    alone = observation.detail["service"]
    assert [operation for operation in observation.of(alone).within if operation.succeeded]
    assert not observation.of(1 - alone).failures
    assert [(service.directory / "placement.conf").read_text() for service in cluster.services] == configurations


def test_writes_are_refused_without_connections(cluster):
    observation = observe(cluster, TakeConnections())
    assert observation.failures
    assert {operation.status for operation in observation.failures} == {503}
    with sa.create_engine(cluster.database_url, poolclass=sa.NullPool).connect() as connection:
        connection.exec_driver_sql("SELECT 1")
