"""Fixtures for the Bare Metal API on the database of the test."""

from __future__ import annotations

import pytest

from tests.db.extensions.bare_metal import Client, Metal


@pytest.fixture
def client(database):
    """Return a client of the routes, which also writes nodes directly."""
    return Client(database)


@pytest.fixture
def metal(database):
    """Return nodes and allocations, without the routes."""
    return Metal(database)
