"""Fixtures: the Bare Metal API on the database of the test."""

from __future__ import annotations

import pytest

from tests.db.extensions.bare_metal import Client, Metal


@pytest.fixture
def client(database):
    """Calls the routes, and writes nodes without them."""
    return Client(database)


@pytest.fixture
def metal(database):
    """Nodes and allocations, without the routes."""
    return Metal(database)
