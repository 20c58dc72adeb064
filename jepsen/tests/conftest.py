"""The options, hooks and fixtures of all tests, which ``tests/conftest.py`` has, and a cluster that tests share."""

from __future__ import annotations

import pytest

from jepsen.tests.running import running_cluster
from tests.conftest import *  # noqa: F403 - a conftest has the hooks and fixtures that are names of its module


@pytest.fixture(scope="session")
def cluster(request):
    """A cluster that tests of nemeses share; parametrize it with names of the catalogue."""
    with running_cluster(request, request.param) as cluster:
        yield cluster
