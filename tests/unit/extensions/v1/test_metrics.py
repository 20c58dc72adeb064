"""Metrics of the history and of the requests that follow it."""

from __future__ import annotations

import pytest

from placement.extensions.v1 import signals
from placement.extensions.v1.extension import EXTENSION
from placement.extensions.v1.history.event import KINDS
from tests.unit.metrics.registries import counting_registry, modes, samples
from tests.unit.metrics.test_definitions import DOCUMENT


@pytest.fixture
def registry():
    with counting_registry(EXTENSION) as registry:
        yield registry


def test_the_history_is_counted(registry):
    signals.events_recorded({"provider": 2, "consumer": 1})
    signals.events_recorded({"consumer": 1})
    signals.events_pruned("retention_days", 7)
    signals.events_pruned("max_events", 2)
    signals.history_measured(400, 86400.5)
    signals.transactions_unordered(3)
    signals.transactions_ordered(2)
    signals.transactions_ordered(1)
    assert samples(registry, "events_recorded_total") == {("provider",): 2, ("consumer",): 2}
    assert samples(registry, "events_pruned_total") == {("retention_days",): 7, ("max_events",): 2}
    assert samples(registry, "history_events") == {(): 400}
    assert samples(registry, "history_oldest_seconds") == {(): 86400.5}
    assert samples(registry, "transactions_unordered") == {(): 3}
    assert samples(registry, "transactions_ordered_total") == {(): 3}


def test_readers_of_events_are_counted(registry):
    signals.waiting_changed(2)
    signals.waiting_changed(1)
    signals.wait_refused()
    signals.position_lost()
    assert samples(registry, "waiting_requests") == {(): 1}
    assert samples(registry, "waits_refused_total") == {(): 1}
    assert samples(registry, "positions_lost_total") == {(): 1}


def test_each_gauge_has_its_multiprocess_mode(registry):
    with counting_registry() as core_registry:
        core = modes(core_registry)
    assert modes(registry) == core | {
        "history_events": "mostrecent",
        "history_oldest_seconds": "mostrecent",
        "transactions_unordered": "livemostrecent",
        "waiting_requests": "livesum",
    }


def test_counters_of_rare_events_start_at_zero(registry):
    assert registry.get_sample_value("placement_events_pruned_total", {"cause": "max_events"}) == 0


@pytest.mark.parametrize("value", [*signals.PruneCause.__args__, *KINDS])
def test_every_label_value_is_documented(value):
    assert f"``{value}``" in DOCUMENT
