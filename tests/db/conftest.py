"""Fixtures: the Bare Metal API on the database of the test, and a pair of Galera nodes for the session."""

from __future__ import annotations

import pytest

from placement.db import schema, standard
from placement.db.database import opened
from tests import galera
from tests.conftest import chosen
from tests.db import replay
from tests.db.metal import Client, Metal
from tests.db.pair import Pair


@pytest.fixture
def client(database):
    """Calls the routes, and writes nodes without them."""
    return Client(database)


@pytest.fixture
def metal(database):
    """Nodes and allocations, without the routes."""
    return Metal(database)


@pytest.fixture
def own_insert(backend):
    """How many statements a transaction's events add to those of the feed: SQLite has no round trips to save."""
    return int(backend.kind == "sqlite")


@pytest.fixture(scope="session")
def pair(request):
    if "mariadb" not in chosen(request.config):
        pytest.skip("mariadb is not among --databases")
    with galera.cluster() as cluster:
        first, second = cluster.create_database()
        with (
            # Nothing waits for the other node, so that requests at both are concurrent.
            opened(first, mysql_wsrep_sync_wait=0) as slow,
            opened(second, mysql_wsrep_sync_wait=0) as quick,
        ):
            schema.sync(slow.engine)
            standard.insert(slow)
            yield Pair(slow, quick)


@pytest.fixture
def replayed(database):
    """At the end of the test, its events, replayed from the beginning, must give the state of the tables."""
    yield
    assert replay.differences(replay.replayed(database), replay.read(database)) == {}
