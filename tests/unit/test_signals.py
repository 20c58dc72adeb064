"""Signals reach whoever is connected, once, and cost nobody anything else."""

from __future__ import annotations

import pytest

from placement import signals
from placement.signals import Signal


def test_whoever_is_connected_is_told_the_facts_once_in_order():
    signal, told = Signal(), []

    def first(*facts, **named):
        told.append(("first", facts, named))

    def second(*facts, **named):
        told.append(("second", facts, named))

    assert not signal.heard
    signal("nobody")
    for listener in (first, second, first):
        signal.connect(listener)
    assert signal.heard
    signal(1, what=2)
    assert told == [("first", (1,), {"what": 2}), ("second", (1,), {"what": 2})]
    signal.disconnect(first)
    signal.disconnect(first)
    signal(3)
    assert told[2:] == [("second", (3,), {})]


@signals.part("sum")
def add(one, other=1):
    """Adds."""
    if other == 0:
        raise ValueError(one)
    return one + other


@pytest.fixture
def told():
    parts = []

    def listener(name, seconds):
        parts.append((name, seconds))

    signals.spent.connect(listener)
    yield parts
    signals.spent.disconnect(listener)


def test_a_part_is_told_with_its_seconds_even_if_it_fails(told):
    assert add(1, other=2) == 3
    assert add.__doc__ == "Adds."
    with pytest.raises(ValueError, match="7"):
        add(7, 0)
    assert [name for name, _ in told] == ["sum", "sum"]
    assert all(0 <= seconds < 60 for _, seconds in told)


def test_a_part_that_nobody_wants_is_just_done():
    assert not signals.spent.heard
    assert add(1) == 2
