"""Clusters for the tests of nemeses."""

from __future__ import annotations

import pytest

from tests import servers
from tests.conftest import chosen, missing
from tests.jepsen import catalogue


@pytest.fixture(scope="session")
def cluster(request):
    """A cluster that tests of nemeses share; parametrize it with names of the catalogue."""
    cls = catalogue.cluster(request.param)
    if cls.kind not in chosen(request.config):
        pytest.skip(f"{cls.kind} is not among --databases")
    try:
        with cls() as running:
            yield running
    except servers.Missing as reason:
        missing(reason)
