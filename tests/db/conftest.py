"""Fixtures for tests with a database, and a pair of Galera nodes for the session."""

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
from tests import galera, made, patient
from tests.children import PATIENCE
from tests.conftest import chosen
from tests.db.galera_pair import Pair
from tests.db.manage import write_configuration
from tests.made import opened


@pytest.fixture(autouse=True)
def _no_maintenance(monkeypatch):
    """Disable the feed's maintenance, whose statements would appear in tests that take more than a minute."""
    monkeypatch.setattr(feed, "MAINTENANCE_INTERVAL", 24 * 3600.0)


@pytest.fixture(autouse=True)
def _patient_checks(request, monkeypatch):
    """Give health checks more time on a busy machine, except in tests that stop the server."""
    if "private_server" not in request.fixturenames:
        monkeypatch.setattr(dialects, "PROBING", Timeouts(connect=60, silence=60))


@pytest.fixture
def patient_database(monkeypatch):
    """Raise the lock timeouts of databases opened later, for a busy machine."""
    for limit in patient.LIMITS:
        monkeypatch.setattr(*limit)
    monkeypatch.setitem(dialects.Setup.from_options.__kwdefaults__, "read_timeout", int(PATIENCE))


@pytest.fixture
def event_inserts(backend):
    """Return the number of statements that a transaction's events add: only SQLite inserts them separately."""
    return int(backend.kind == "sqlite" and "v1" in extension.installed_extensions())


@pytest.fixture
def no_pauses(monkeypatch):
    """Remove the pauses between attempts."""
    monkeypatch.setattr(retry, "MAX_PAUSE", 0)


@pytest.fixture(scope="session")
def pair(request):
    if "mariadb" not in chosen(request.config):
        pytest.skip("mariadb is not among --databases")
    with galera.cluster() as cluster:
        first, second = cluster.create_database()
        with (
            # Neither node waits for the other, so that requests at both are concurrent.
            opened(first, mysql_wsrep_sync_wait=0) as slow,
            opened(second, mysql_wsrep_sync_wait=0) as quick,
        ):
            made.sync(slow.engine)
            standard.insert(slow)
            yield Pair(slow, quick)


class Received(list):
    """Signals of a module in the order of their publication: the name and the facts of each."""

    @contextlib.contextmanager
    def recording(self, module):
        """Record the signals of the module during the block."""
        listeners = {name: self._listener(name) for name, value in vars(module).items() if isinstance(value, Signal)}
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
        """Return the facts of each signal with this name."""
        return [facts[1:] for facts in self if facts[0] == name]


@pytest.fixture
def received():
    """Return the signals that the test publishes."""
    received = Received()
    with received.recording(signals):
        yield received


@pytest.fixture
def configuration(tmp_path, database_url):
    return write_configuration(tmp_path, database_url)


@pytest.fixture
def main(in_process):
    """Return a function that runs placement-manage in this process."""
    return functools.partial(in_process, manage)


@pytest.fixture
def run(configuration, main):
    """Return a function that runs a command on the database of the test."""
    return lambda *words, config=configuration: main("--config-file", str(config), *words)
