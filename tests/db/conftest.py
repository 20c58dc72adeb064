"""Fixtures of the tests of the Bare Metal API, each on the database of the test."""

from __future__ import annotations

import pytest

from tests.db.metal import Client, Metal


@pytest.fixture
def client(database):
    """Calls the routes, and writes nodes without them."""
    return Client(database)


@pytest.fixture
def metal(database):
    """Nodes and allocations, without the routes."""
    return Metal(database)
