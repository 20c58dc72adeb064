"""Fixtures of the tests of the index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.index.machine import recorded_reloads


@pytest.fixture
def reloads() -> Iterator[list[str]]:
    """The causes of the readings of the whole database during the test."""
    with recorded_reloads() as causes:
        yield causes
