"""A signal calls every subscriber once, and timed functions publish their durations."""

from __future__ import annotations

import pytest

from placement import signals
from placement.signals import Signal


def test_every_subscriber_is_called_once_with_the_facts_in_order_of_subscription():
    signal, calls = Signal(), []

    def first(*facts, **named_facts):
        calls.append(("first", facts, named_facts))

    def second(*facts, **named_facts):
        calls.append(("second", facts, named_facts))

    assert not signal.connected
    signal("without subscribers")
    for listener in (first, second, first):
        signal.connect(listener)
    assert signal.connected
    signal(1, seconds=2)
    assert calls == [("first", (1,), {"seconds": 2}), ("second", (1,), {"seconds": 2})]
    signal.disconnect(first)
    signal.disconnect(first)
    signal(3)
    assert calls[2:] == [("second", (3,), {})]


@signals.timed("sum")
def add(number, other=1):
    """Add."""
    if other == 0:
        raise ValueError(number)
    return number + other


@pytest.fixture
def timings():
    received = []

    def listener(name, seconds):
        received.append((name, seconds))

    signals.timing.connect(listener)
    yield received
    signals.timing.disconnect(listener)


def test_a_timed_function_publishes_its_seconds_even_if_it_raises(timings):
    assert add(1, other=2) == 3
    assert add.__doc__ == "Add."
    with pytest.raises(ValueError, match="7"):
        add(7, 0)
    assert [name for name, _ in timings] == ["sum", "sum"]
    assert all(0 <= seconds < 60 for _, seconds in timings)


def test_a_timed_function_without_subscribers_returns_its_result():
    assert not signals.timing.connected
    assert add(1) == 2
