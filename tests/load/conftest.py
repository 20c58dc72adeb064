"""Fixtures: the service in several processes with several threads each, on a database that all storms share."""

from __future__ import annotations

import re
import secrets

import pytest

from placement.metrics.directory import Directory
from tests import children, running
from tests.load.history import contradictions
from tests.load.soundness import flaws
from tests.load.storm import Storm
from tests.made import opened
from tests.patient import APPLICATION, OPTIONS


@pytest.fixture(scope="session")
def service(backend):
    url = backend.create_database()
    try:
        flags = ("--enable-threads", "--threads", "4")
        metrics = children.run_directory() / f"metrics-{secrets.token_hex(4)}"
        options = {"metrics": {"directory": metrics}, "baremetal": {"enabled": True}, **OPTIONS}
        with running.uwsgi(url, 3, options, module=APPLICATION, flags=flags) as running_service:
            running_service.database_url, running_service.metrics = url, metrics
            yield running_service
    finally:
        backend.drop_database(url)


@pytest.fixture
def storm(service):
    """Clients; at the end, their history and the rows of the database must be consistent."""
    clients = Storm(service.url)
    yield clients
    assert contradictions(clients.history) == []
    with opened(service.database_url) as database:
        assert flaws(database) == {}


@pytest.fixture
def counter(service):
    """Return a function that takes a sample's name and labels, and returns a function for its sum over all workers."""

    def counter_of(sample):
        def total():
            text, _ = Directory(str(service.metrics)).text()
            match = re.search(rf"^{re.escape(sample)} (\S+)".encode(), text, re.MULTILINE)
            return float(match[1]) if match else 0.0

        return total

    return counter_of
