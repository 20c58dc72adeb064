"""Options, hooks and fixtures of ``tests/conftest.py``, plus a cluster that tests share."""

from __future__ import annotations

import pytest

from jepsen.tests.running import running_cluster
from tests.conftest import *  # noqa: F403 - pytest finds hooks and fixtures by their names in this module


@pytest.fixture(scope="session")
def cluster(request):
    """A cluster that tests of nemeses share; parametrized by names from the catalogue."""
    with running_cluster(request, request.param) as cluster:
        yield cluster
