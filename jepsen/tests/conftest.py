"""The options, hooks and fixtures of all tests, which ``tests/conftest.py`` has, and a cluster that tests share."""

from __future__ import annotations

import pytest

import tests.conftest
from jepsen.tests.running import running_cluster
from tests.conftest import *  # noqa: F403 - a conftest has the hooks and fixtures that are names of its module


def pytest_addoption(parser, pluginmanager):
    if pluginmanager.is_registered(tests.conftest):
        raise pytest.UsageError("jepsen/tests and tests are two sessions of pytest: make jepsen, make test")
    tests.conftest.pytest_addoption(parser)


@pytest.fixture(scope="session")
def cluster(request):
    """A cluster that tests of nemeses share; parametrize it with names of the catalogue."""
    with running_cluster(request, request.param) as cluster:
        yield cluster
