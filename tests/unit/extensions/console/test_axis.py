"""The marks on the axes of a chart."""

from __future__ import annotations

import datetime

import pytest

from placement.extensions.console.views import axis
from placement.extensions.console.views.units import in_units

NOON = datetime.datetime(2026, 11, 23, 12)
GIB, TIB = 1024, 1024**2


@pytest.mark.parametrize(
    ("top", "resource_class", "marks"),
    [
        (1, "VCPU", [0, 1]),
        (7, "VCPU", [0, 2, 4, 6]),
        (2288, "VCPU", [0, 500, 1000, 1500, 2000]),
        (3, "MEMORY_MB", [0, 1, 2, 3]),
        (1000 * GIB, "MEMORY_MB", [0, *(number * 200 * GIB for number in range(1, 6))]),
        (1100 * GIB, "MEMORY_MB", [0, *(number * 200 * GIB for number in range(1, 6))]),
        (1900 * GIB, "MEMORY_MB", [0, 512 * GIB, TIB, 1536 * GIB]),
        (8 * TIB, "MEMORY_MB", [0, 2 * TIB, 4 * TIB, 6 * TIB, 8 * TIB]),
        (165 * GIB, "DISK_GB", [0, 50 * GIB, 100 * GIB, 150 * GIB]),
        (2500, "NET_BW_EGR_KILOBIT_PER_SEC", [0, 500, 1000, 1500, 2000, 2500]),
    ],
)
def test_amounts_are_round_in_the_unit_of_the_class(top, resource_class, marks):
    assert axis.amounts(top, resource_class) == marks
    assert len({in_units(mark, resource_class) for mark in marks}) == len(marks)


@pytest.mark.parametrize("top", [1, 9, 10, 11, 999, 123_456_789, 2**62])
@pytest.mark.parametrize("resource_class", ["VCPU", "MEMORY_MB", "DISK_GB", "NET_BW_EGR_KILOBIT_PER_SEC"])
def test_an_axis_has_a_few_marks(top, resource_class):
    marks = axis.amounts(top, resource_class)
    assert 2 <= len(marks) <= 6
    assert marks[-1] <= top


@pytest.mark.parametrize(
    ("hours", "labels"),
    [
        (1, ["12:10", "12:20", "12:30", "12:40", "12:50"]),
        (24, ["15:00", "18:00", "21:00", "24 Nov", "03:00", "06:00", "09:00"]),
        (7 * 24, [f"{day} Nov" for day in range(24, 31)]),
        (25 * 24, ["26 Nov", "1 Dec", "6 Dec", "11 Dec", "16 Dec"]),
    ],
)
def test_times_are_round_and_a_day_begins_with_its_date(hours, labels):
    marks = axis.times(NOON, NOON + datetime.timedelta(hours=hours))
    assert [label for _, label in marks] == labels
    assert all(NOON < timestamp < NOON + datetime.timedelta(hours=hours) for timestamp, _ in marks)


def test_a_period_of_any_length_has_marks():
    since, until = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)
    assert 1 < len(axis.times(since, until)) <= 8
