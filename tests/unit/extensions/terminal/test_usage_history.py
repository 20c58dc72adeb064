"""The trend of a class: its usage in equal spans of time."""

from __future__ import annotations

import pytest

from placement.extensions.terminal import usage_history
from placement.extensions.terminal.style import Style

BLOCKS = Style(blocks=True)


def sample(minute, used, capacity=8):
    return {"at": f"2026-11-20T08:{minute:02}:00Z", "capacity": capacity, "used": used}


def trend(*samples):
    (row,) = usage_history.rows({"classes": {"VCPU": samples}}, None, BLOCKS)
    return row[-1]


def test_samples_are_positioned_by_their_time():
    """A gap means that nothing was written, so the previous sample applies."""
    assert trend(sample(0, 0), sample(12, 8), sample(24, 4)) == "▁" * 11 + "█" * 12 + "▅"


@pytest.mark.parametrize(
    ("used", "capacity", "block"), [(0, 8, "▁"), (1, 8, "▂"), (8, 8, "█"), (9, 8, "█"), (0, 0, "▁"), (1, 0, "█")]
)
def test_the_height_of_a_block_is_the_used_share_of_a_class(used, capacity, block):
    assert trend(sample(0, used, capacity)) == block


def test_a_class_without_capacity_has_no_percentage():
    ((*_, percent, least, highest, _),) = usage_history.rows(
        {"classes": {"VCPU": [sample(0, 1, 0), sample(1, 3, 0)]}}, None, Style()
    )
    assert (percent, least, highest) == (None, 1, 3)


def test_a_trend_is_never_folded():
    document = {"classes": {"A_CLASS_WITH_A_LONG_NAME": [sample(0, 1), sample(50, 2)]}}
    _, _, first, *_ = usage_history.lines(document, Style(75, blocks=True))
    assert first.endswith("▂" * 23 + "▃")
    assert max(map(len, usage_history.lines(document, Style(75, blocks=True)))) <= 75


def shares_of(by, *shares):
    """Return the rows of the shares of a class with five samples, each with a capacity of 8 VCPU."""
    document = {
        "classes": {"VCPU": [sample(minute, 4) for minute in (0, 10, 20, 30, 35)]},
        "shares": {"VCPU": [{"name": name, "samples": samples} for name, samples in shares]},
    }
    return [row[1:] for row in usage_history.rows(document, by, BLOCKS)]


def project_sample(minute, used):
    return {"at": sample(minute, used)["at"], "used": used}


def test_a_project_is_compared_with_the_capacity_of_its_class():
    red = ("red", [project_sample(minute, used) for minute, used in ((0, 0), (10, 4), (20, 8), (30, 2))])
    assert shares_of("project", red) == [("red", 2, 8, 25, 0, 8, "▁" * 7 + "▅" * 8 + "█" * 8 + "▃")]


def test_an_aggregate_has_its_own_capacity():
    rack = ("a1", [sample(minute, 1, 2) for minute in (0, 10, 20, 30)])
    assert shares_of("aggregate", rack) == [("a1", 1, 2, 50, 1, 1, "▅" * 24)]


def test_an_unknown_share_is_a_gap():
    red = ("red", [project_sample(minute, 8) for minute in (0, 10, 20, 30)])
    blue = ("blue", [project_sample(0, 8), project_sample(20, 4)])
    assert shares_of("project", red, blue)[1] == ("blue", None, 8, None, 4, 8, "█" * 7 + " " * 8 + "▅" * 8 + " ")


def test_shares_by_project_have_a_column_for_the_project():
    assert usage_history.columns("project")[:3] == ("class", "project", "used")


def test_unknown_usage_is_reported():
    document = {"classes": {"VCPU": [sample(0, 4)]}, "shares": {}}
    assert [*usage_history.lines(document, BLOCKS, "project")] == ["No usage by project is known."]
    assert [*usage_history.lines({"classes": {}, "shares": {}}, BLOCKS, "project")] == ["No usage is known."]


def test_a_share_above_its_capacity_is_marked():
    document = {
        "classes": {"VCPU": [sample(0, 4, 2)]},
        "shares": {
            "VCPU": [{"name": name, "samples": [project_sample(0, used)]} for name, used in (("a", 3), ("b", 1))]
        },
    }
    _, _, over, within = usage_history.lines(document, Style(colour=True), "project")
    assert ("\x1b[31m" in over, "\x1b[31m" in within) == (True, False)
