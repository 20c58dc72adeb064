"""The service in several processes with several threads each, on a database that all storms share."""

from __future__ import annotations

import pytest

from placement.db.engine import opened
from tests import running, servers
from tests.conftest import missing
from tests.load.history import contradictions
from tests.load.soundness import flaws
from tests.load.storm import Storm


@pytest.fixture(scope="session")
def service(backend):
    url = backend.create_database()
    try:
        flags = ("--lazy-apps", "--enable-threads", "--threads", "2")
        with running.uwsgi(url, processes=3, flags=flags) as running_service:
            running_service.database_url = url
            yield running_service
    except servers.Missing as reason:
        missing(reason)
    finally:
        backend.drop_database(url)


@pytest.fixture
def storm(service):
    """Clients; when they are done, nothing that they saw or left behind may contradict itself."""
    clients = Storm(service.url)
    yield clients
    assert contradictions(clients.history) == []
    with opened(service.database_url) as database:
        assert flaws(database.engine) == {}
