"""Each kind of connection failure between services and database: the effect on clients, and recovery."""

from __future__ import annotations

import socket

import pytest
import sqlalchemy as sa

from jepsen.nemeses import proxies
from jepsen.tests.nemesis_observer import SERVERS, observe
from tests.run_length import LONG

pytestmark = [pytest.mark.xdist_group("nemeses"), pytest.mark.parametrize("cluster", SERVERS, indirect=True)]


def numbers(observation):
    """Return the service whose connections failed, and the other one."""
    harmed = int(observation.detail["proxy"].rpartition(" ")[2])
    return harmed, 1 - harmed


def stored_operations(cluster, operations):
    """Return the operations whose provider is in the database."""
    engine = sa.create_engine(cluster.database_url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        names = {*connection.exec_driver_sql("SELECT name FROM resource_providers").scalars()}
    return [operation for operation in operations if operation.body["name"] in names]


def test_connections_are_reset(cluster):
    observation = observe(cluster, proxies.ResetConnections())
    harmed, other = numbers(observation)
    assert observation.of(harmed).failures
    assert not [operation for operation in observation.of(harmed).within if operation.succeeded]
    assert not observation.of(other).failures


def test_new_connections_are_refused(cluster):
    refusing = []

    def connect():
        for name, proxy in cluster.proxies.items():
            try:
                socket.create_connection(("127.0.0.1", proxy.port)).close()
            except ConnectionRefusedError:
                refusing.append(name)

    observation = observe(cluster, proxies.RefuseConnections(), meanwhile=connect)
    harmed, other = numbers(observation)
    assert refusing == [observation.detail["proxy"]]
    assert observation.of(harmed).failures
    assert not observation.of(other).failures


def test_packets_are_delayed(cluster):
    observation = observe(cluster, proxies.DelayPackets(), answering=lambda detail: [1 - int(detail["proxy"][-1])])
    harmed, other = numbers(observation)
    assert not observation.failures
    assert len(observation.of(harmed).within) * 3 < len(observation.of(other).within)


@pytest.mark.parametrize("nemesis", [proxies.CutAfterCommit, proxies.CutBeforeCommit])
def test_transactions_are_cut_at_their_commit(cluster, nemesis):
    for seed in range(1, 6):  # each seed chooses one of the first few commits
        observation = observe(cluster, nemesis(), seed)
        harmed, other = numbers(observation)
        opened = [operation for operation in observation.of(harmed).failures if operation.is_open]
        stored = stored_operations(cluster, opened)
        # Without such an operation, the cut transactions were internal ones that register feed writers.
        if stored or (opened and not nemesis.forwards):
            break
    assert observation.detail["cut"] > 0
    assert opened
    assert not observation.of(other).failures
    assert bool(stored) == nemesis.forwards


@pytest.mark.skipif(not LONG, reason="only in long runs: the service gives up after thirty seconds")
def test_packets_are_dropped(cluster):
    observation = observe(cluster, proxies.DropPackets())
    harmed, other = numbers(observation)
    assert not [operation for operation in observation.of(harmed).within if operation.succeeded]
    assert observation.of(harmed).failures or observation.of(harmed).delayed
    assert not observation.of(other).failures
