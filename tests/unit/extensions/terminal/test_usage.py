"""The trend of a usage: how full a class was in equal spans of time."""

from __future__ import annotations

import pytest

from placement.extensions.terminal import usage
from placement.extensions.terminal.style import Style

BLOCKS = Style(blocks=True)


def sample(minute, used, capacity=8):
    return {"at": f"2026-11-20T08:{minute:02}:00Z", "capacity": capacity, "used": used}


def trend(*samples):
    (row,) = usage.rows({"classes": {"VCPU": samples}}, BLOCKS)
    return row[-1]


def test_samples_are_placed_by_their_time():
    """Where there is none, nothing was written, and the one before goes on."""
    assert trend(sample(0, 0), sample(12, 8), sample(24, 4)) == "▁" * 11 + "█" * 12 + "▅"


@pytest.mark.parametrize(
    ("used", "capacity", "block"), [(0, 8, "▁"), (1, 8, "▂"), (8, 8, "█"), (9, 8, "█"), (0, 0, "▁"), (1, 0, "█")]
)
def test_a_block_is_as_high_as_a_class_is_full(used, capacity, block):
    assert trend(sample(0, used, capacity)) == block


def test_a_class_without_capacity_has_no_percentage():
    ((*_, percent, least, most, _),) = usage.rows({"classes": {"VCPU": [sample(0, 1, 0), sample(1, 3, 0)]}}, Style())
    assert (percent, least, most) == (None, 1, 3)


def test_a_trend_is_never_folded():
    document = {"classes": {"A_CLASS_WITH_A_LONG_NAME": [sample(0, 1), sample(50, 2)]}}
    _, _, first, *_ = usage.lines(document, Style(75, blocks=True))
    assert first.endswith("▂" * 23 + "▃")
    assert max(map(len, usage.lines(document, Style(75, blocks=True)))) <= 75
