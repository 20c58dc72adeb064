"""The timestamps and the period that a request for the usage history reads."""

from __future__ import annotations

import datetime

import pytest

from placement.extensions.v1.history.usage_shares import timestamps_per_class
from placement.extensions.v1.schemas import usage_history
from placement.version_history import OLDEST

NOW = datetime.datetime(2026, 11, 23, 12)


@pytest.mark.parametrize(
    ("limit", "classes", "timestamps"),
    [
        # With 20 names for each class and timestamp, 40 000 rows are 2000 timestamps of one class.
        (200, 0, 200),
        (200, 1, 200),
        (1000, 2, 1000),
        (1000, 3, 666),
        (200, 10, 200),
        (200, 11, 181),
        (200, 100, 20),
        # A line has at least two points, unless the limit is one.
        (200, 100_000, 2),
        (1, 100_000, 1),
    ],
)
def test_with_many_classes_fewer_timestamps_are_read(limit, classes, timestamps):
    assert timestamps_per_class(limit, classes) == timestamps


@pytest.mark.parametrize(
    ("query", "includes_present"),
    [
        ({}, True),
        ({"from": "2026-11-23", "to": "2026-11-24"}, True),
        ({"from": "2026-11-23T12:00:00", "to": "2026-11-24"}, True),
        ({"from": "2026-11-23", "to": "2026-11-23T11:59:59"}, False),
        ({"from": "2026-11-23T12:00:01", "to": "2026-11-24"}, False),
        ({"from": "2999-01-01", "to": "3000-01-01"}, False),
    ],
)
def test_a_period_that_contains_the_current_time_includes_the_present(query, includes_present):
    parameters = usage_history.SHOW.validate([*query.items()], OLDEST)
    assert usage_history.period(parameters, NOW)[2] is includes_present
