"""Clusters for tests."""

from __future__ import annotations

import contextlib

import pytest

from jepsen import catalogue
from tests import servers
from tests.conftest import chosen, missing


@contextlib.contextmanager
def running_cluster(request, name, *args, **options):
    """Provide the cluster of this name; skip the test if its kind is not among --databases, or where it cannot run."""
    cls = catalogue.cluster(name)
    if cls.kind not in chosen(request.config):
        pytest.skip(f"{cls.kind} is not among --databases")
    try:
        with cls(*args, **options) as cluster:
            yield cluster
    except servers.Missing as reason:
        missing(reason)


@pytest.fixture(scope="session")
def cluster(request):
    """A cluster that tests of nemeses share; parametrize it with names of the catalogue."""
    with running_cluster(request, request.param) as cluster:
        yield cluster
