"""What a request for the usage reads."""

from __future__ import annotations

import datetime

import pytest

from placement.extensions.v1.history.usage_shares import timestamps_per_class
from placement.extensions.v1.schemas import usage_history
from placement.version_history import OLDEST

NOW = datetime.datetime(2026, 11, 23, 12)


@pytest.mark.parametrize(
    ("most", "classes", "moments"),
    [
        # With 20 names of each class and moment, 40 000 rows are 2000 moments of one class.
        (200, 0, 200),
        (200, 1, 200),
        (1000, 2, 1000),
        (1000, 3, 666),
        (200, 10, 200),
        (200, 11, 181),
        (200, 100, 20),
        # A line has two points at least, unless one is asked for.
        (200, 100_000, 2),
        (1, 100_000, 1),
    ],
)
def test_of_many_classes_fewer_moments_are_read(most, classes, moments):
    assert timestamps_per_class(most, classes) == moments


@pytest.mark.parametrize(
    ("given", "present"),
    [
        ({}, True),
        ({"from": "2026-11-23", "to": "2026-11-24"}, True),
        ({"from": "2026-11-23T12:00:00", "to": "2026-11-24"}, True),
        ({"from": "2026-11-23", "to": "2026-11-23T11:59:59"}, False),
        ({"from": "2026-11-23T12:00:01", "to": "2026-11-24"}, False),
        ({"from": "2999-01-01", "to": "3000-01-01"}, False),
    ],
)
def test_the_present_is_a_part_of_periods_that_it_is_in(given, present):
    parameters = usage_history.SHOW.validate([*given.items()], OLDEST)
    assert usage_history.period(parameters, NOW)[2] is present
