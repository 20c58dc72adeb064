"""The usage over time as a picture."""

from __future__ import annotations

import datetime

from placement.extensions.console.views.usage_chart import UsageChart
from placement.extensions.v1.history.usage_samples import UsageSample

START = datetime.datetime(2026, 11, 23)
HOUR = datetime.timedelta(hours=1)


def chart(*samples):
    """Return the picture of ten hours with samples (hour, capacity, used)."""
    return UsageChart(
        "VCPU",
        [UsageSample(START + hour * HOUR, capacity, used) for hour, capacity, used in samples],
        START,
        START + 10 * HOUR,
    )


def test_a_picture_has_time_from_left_to_right_and_amounts_from_below():
    drawn = chart((0, 100, 0), (5, 200, 50), (10, 200, 100))
    assert drawn.capacity_line == "0.0,100.0 500.0,0.0 1000.0,0.0"
    assert drawn.used_line == "0.0,200.0 500.0,150.0 1000.0,100.0"
    assert drawn.used_area == "0.0,200.0 0.0,200.0 500.0,150.0 1000.0,100.0 1000.0,200.0"
    assert (drawn.least, drawn.most, drawn.last.used, drawn.top, drawn.is_over) == (0, 100, 100, 200, False)


def test_nothing_leaves_the_picture():
    drawn = chart((-1, 0, -5), (11, 10, 30))
    assert drawn.used_line == "0.0,200.0 1000.0,0.0"
    assert drawn.capacity_line == "0.0,200.0 1000.0,133.3"
    assert drawn.is_over


def test_a_class_of_which_there_is_nothing_has_a_picture():
    assert chart((0, 0, 0), (10, 0, 0)).used_line == "0.0,200.0 1000.0,200.0"
