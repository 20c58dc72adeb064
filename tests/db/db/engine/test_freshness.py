"""The replacement of connections after a loss, and the check whether a server accepts writes."""

from __future__ import annotations

import itertools

import pytest
import sqlalchemy as sa

from placement.db.engine import freshness
from placement.db.engine.freshness import Freshness
from tests.clock import Clock
from tests.made import opened

pytestmark = pytest.mark.every_database


@pytest.fixture
def clock(monkeypatch):
    fake_clock = Clock(1000.0)
    monkeypatch.setattr(freshness, "time", fake_clock)
    return fake_clock


def test_connections_are_replaced_once_for_each_server_that_is_lost(clock, tmp_path):
    """Threads that notice the loss later, in work that had already begun, do not discard new connections."""
    fresh, engine = Freshness(), sa.create_engine(f"sqlite:///{tmp_path}/file")
    fresh.watch(engine, reads=False)

    def use_connection():
        clock.now += 1
        with engine.connect() as connection:
            return connection.connection.dbapi_connection

    first = use_connection()
    assert use_connection() is first
    began = clock.now
    fresh.discard_connections(began)
    second = use_connection()
    assert second is not first
    fresh.discard_connections(began)
    assert use_connection() is second
    fresh.discard_connections(clock.now)
    assert use_connection() is not second
    engine.dispose()


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_a_server_is_asked_every_five_seconds_whether_it_accepts_writes(database, clock):
    """MariaDB counts its statements."""
    count = sa.text("SHOW SESSION STATUS LIKE 'Questions'")
    with opened(database.url, pool_size=1, max_overflow=0) as second_database:
        counts = []
        for clock.now in (1000, 1000, 1004.9, 1005.1, 1005.2, 1010, 1010.2):
            counts.append(second_database.read(lambda db: int(db.execute(count).one()[1])))
    assert [later - earlier for earlier, later in itertools.pairwise(counts)] == [1, 1, 2, 1, 1, 2]
