"""Fixtures: conditions of a test with a database, and a pair of Galera nodes for the session."""

from __future__ import annotations

import contextlib
import functools

import pytest

from placement import extension, signals
from placement.cmd import manage
from placement.db import feed
from placement.db.engine import dialects
from placement.db.engine.timeouts import Timeouts
from placement.db.upkeep import standard
from placement.db.writes import retry
from placement.signals import Signal
from tests import galera, made, patient, recorded
from tests.children import PATIENCE
from tests.conftest import chosen
from tests.db.galera_pair import Pair
from tests.db.manage import written
from tests.made import opened


@pytest.fixture(autouse=True)
def _no_maintenance(monkeypatch):
    """No test has the statements of the feed's maintenance among its own because it took more than a minute."""
    monkeypatch.setattr(feed, "MAINTENANCE_INTERVAL", 24 * 3600.0)


@pytest.fixture(autouse=True)
def _patient_checks(request, monkeypatch):
    """Where nothing happens to the server, a health check gives a busy machine time for the answer."""
    if "private_server" not in request.fixturenames:
        monkeypatch.setattr(dialects, "PROBING", Timeouts(connect=60, silence=60))


@pytest.fixture
def patient_database(monkeypatch):
    """No statement of a database that is opened later is given up while it waits for a lock, on a busy machine too."""
    for limit in patient.LIMITS:
        monkeypatch.setattr(*limit)
    monkeypatch.setitem(dialects.Setup.of.__kwdefaults__, "read_timeout", int(PATIENCE))


@pytest.fixture
def own_insert(backend):
    """How many statements a transaction's events add to those of the feed: SQLite has no round trips to save."""
    return int(backend.kind == "sqlite" and "v1" in extension.installed())


@pytest.fixture
def no_pauses(monkeypatch):
    """Attempts follow each other at once."""
    monkeypatch.setattr(retry, "MAX_PAUSE", 0)


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
            made.sync(slow.engine)
            standard.insert(slow)
            yield Pair(slow, quick)


@pytest.fixture
def replayed(database):
    """At the end of the test, its events, replayed from the beginning, must give the state of the tables."""
    yield
    assert recorded.differences(database) == {}


class Received(list):
    """Records the facts of each event of a module."""

    @contextlib.contextmanager
    def connected(self, module):
        listeners = {name: self._listener(name) for name, each in vars(module).items() if isinstance(each, Signal)}
        for name, listener in listeners.items():
            getattr(module, name).connect(listener)
        try:
            yield
        finally:
            for name, listener in listeners.items():
                getattr(module, name).disconnect(listener)

    def _listener(self, name):
        return lambda *facts: self.append((name, *facts))

    def of(self, name):
        return [facts[1:] for facts in self if facts[0] == name]


@pytest.fixture
def received():
    received = Received()
    with received.connected(signals):
        yield received


@pytest.fixture
def configuration(tmp_path, database_url):
    return written(tmp_path, database_url)


@pytest.fixture
def main(in_process):
    """Run placement-manage in this process."""
    return functools.partial(in_process, manage)


@pytest.fixture
def run(configuration, main):
    """Run a command on the database of the test."""
    return lambda *words, config=configuration: main("--config-file", str(config), *words)
