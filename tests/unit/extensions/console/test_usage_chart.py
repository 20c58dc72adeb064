"""Charts of the usage history."""

from __future__ import annotations

import datetime
import itertools

import pytest

from placement.extensions.console.views.usage_chart import UsageChart, charts_of
from placement.extensions.v1.history.usage_samples import UsageSample
from placement.extensions.v1.history.usage_shares import MAX_SHARES, UsageShare

START = datetime.datetime(2026, 11, 23)
HOUR = datetime.timedelta(hours=1)


def chart(*samples):
    """Return the chart of ten hours with samples (hour, capacity, used)."""
    return UsageChart(
        "VCPU",
        [UsageSample(START + hour * HOUR, capacity, used) for hour, capacity, used in samples],
        START,
        START + 10 * HOUR,
    )


def test_time_runs_from_left_to_right_and_amounts_upwards():
    graph = chart((0, 100, 0), (5, 200, 50), (10, 200, 100))
    assert graph.capacity_line == "0.0,100.0 500.0,0.0 1000.0,0.0"
    assert graph.used_line == "0.0,200.0 500.0,150.0 1000.0,100.0"
    assert graph.used_area == "0.0,200.0 0.0,200.0 500.0,150.0 1000.0,100.0 1000.0,200.0"
    assert (graph.minimum, graph.maximum, graph.last.used, graph.top, graph.is_over) == (0, 100, 100, 200, False)


def test_no_line_leaves_the_chart():
    graph = chart((-1, 0, -5), (11, 10, 30))
    assert graph.used_line == "0.0,200.0 1000.0,0.0"
    assert graph.capacity_line == "0.0,200.0 1000.0,133.3"
    assert graph.is_over


def test_a_class_without_capacity_has_a_chart():
    assert chart((0, 0, 0), (10, 0, 0)).used_line == "0.0,200.0 1000.0,200.0"


# --- lines -----------------------------------------------------------------------------------------------------------


def shares(**used):
    """Return shares by name, with the usage at hour 0, 1, 2..."""
    return {
        name: [UsageShare(name, START + hour * HOUR, amount) for hour, amount in enumerate(amounts)]
        for name, amounts in used.items()
    }


def charts(**classes):
    """Return the charts of a page with shares by class; the total of each class is 10 of 1000."""
    samples = [UsageSample(START + hour * HOUR, 1000, 10) for hour in range(3)]
    return charts_of(dict.fromkeys(classes, samples), classes, START, START + 10 * HOUR)


def test_each_share_is_a_line_and_the_largest_of_them_reaches_the_top():
    [graph] = charts(VCPU=shares(red=(0, 50, 100), blue=(20, 20, 20)))
    assert [(line.name, line.points) for line in graph.lines] == [
        ("red", "0.0,200.0 100.0,100.0 200.0,0.0"),
        ("blue", "0.0,160.0 100.0,160.0 200.0,160.0"),
    ]
    [red, blue] = graph.lines
    assert (red.last.used, red.minimum, red.maximum, blue.minimum) == (100, 0, 100, 20)


def test_a_capacity_far_above_the_lines_is_not_drawn():
    [far_capacity] = charts(VCPU=shares(red=(333, 1, 1)))
    [near_capacity] = charts(VCPU=shares(red=(334, 1, 1)))
    [without_shares] = charts(VCPU={})
    assert [(graph.shows_capacity, graph.top) for graph in (far_capacity, near_capacity, without_shares)] == [
        (False, 333),
        (True, 1000),
        (True, 1000),
    ]


def test_only_the_largest_shares_are_drawn():
    [graph] = charts(VCPU=shares(**{f"project{number}": (99 - number,) for number in range(20)}))
    assert [line.name for line in graph.lines] == [f"project{number}" for number in range(8)]
    assert [line.colour for line in graph.lines] == [*range(8)]


def test_a_name_has_one_colour_on_a_page():
    first, second = charts(VCPU=shares(red=(9,), blue=(8,)), PGPU=shares(blue=(9,), green=(8,)))
    assert {line.name: line.colour for line in first.lines} == {"red": 0, "blue": 1}
    assert {line.name: line.colour for line in second.lines} == {"blue": 1, "green": 2}


def test_names_share_colours_only_in_different_charts():
    shares_by_sample = [shares(**{f"{letter}{number}": (9,) for number in range(8)}) for letter in "ab"]
    for graph in charts(VCPU=shares_by_sample[0], PGPU=shares_by_sample[1]):
        assert [line.colour for line in graph.lines] == [*range(8)]


def test_the_fullest_class_comes_first():
    samples = {name: [UsageSample(START, 10, used)] for name, used in (("VCPU", 3), ("PGPU", 9), ("VGPU", 5))}
    assert [graph.resource_class for graph in charts_of(samples, {}, START, START + HOUR)] == ["PGPU", "VGPU", "VCPU"]


# --- points ----------------------------------------------------------------------------------------------------------


def test_points_are_spread_over_the_chart_and_their_bands_cover_it():
    graph = chart(*((hour / 10, 100, hour) for hour in range(100)))
    points = graph.points(5)
    assert [point.at for point in points] == [START + hour / 10 * HOUR for hour in (19, 39, 59, 79, 99)]
    assert points[0].left == 0
    for left, right in itertools.pairwise(points):
        assert left.left + left.width == pytest.approx(right.left)
        assert left.left <= left.x <= left.left + left.width
    assert points[-1].left + points[-1].width == 100


def test_a_point_has_the_height_and_amount_of_each_line():
    [graph] = charts(MEMORY_MB=shares(red=(0, 2048), blue=(1024,)))
    first, second, third = graph.points(10)
    assert first.marks == [(0, 100.0), (1, 50.0)]
    assert first.sentence.replace("\N{NARROW NO-BREAK SPACE}", " ") == "red 0, blue 1 GiB"
    assert second.marks == [(0, 0.0), (1, 100.0)]
    assert third.marks == []


def test_a_missing_share_is_zero_if_all_shares_are_known():
    [graph] = charts(MEMORY_MB=shares(red=(0, 2048), blue=(1024,)))
    assert [(line.name, line.minimum, [share.used for share in line.samples]) for line in graph.lines] == [
        ("red", 0, [0, 2048]),
        ("blue", 0, [1024, 0]),
    ]
    # With this many shares, further projects may have used something, too.
    other_shares = shares(**{f"p{number:02}": (9,) for number in range(MAX_SHARES)})
    [graph] = charts(MEMORY_MB={"late": [UsageShare("late", START + HOUR, 1)], **other_shares})
    assert [share.used for share in graph.lines[0].samples] == [1]


def test_an_aggregate_without_a_share_at_a_time_has_no_point_there():
    """Its capacity at that time is unknown."""
    whole = [UsageShare("whole", START + hour * HOUR, 1, 5) for hour in range(2)]
    [graph] = charts(VCPU={"whole": whole, "part": [UsageShare("part", START, 1, 5)]})
    assert [[share.capacity for share in line.samples] for line in graph.lines] == [[5, 5], [5]]


def test_the_present_is_not_a_point():
    assert [point.at for point in chart((5, 9, 9), (10, 9, 9)).points(10)] == [START + 5 * HOUR]


# --- axes ------------------------------------------------------------------------------------------------------------


def test_the_axes_are_marked():
    graph = chart((0, 200, 0), (10, 200, 100))
    assert graph.amounts == [("0", 100.0), ("50", 75.0), ("100", 50.0), ("150", 25.0), ("200", 0.0)]
    assert graph.times == [("03:00", 30.0), ("06:00", 60.0), ("09:00", 90.0)]
