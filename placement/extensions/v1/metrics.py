"""Metrics of the history and of those who follow it (docs/observability.rst)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import get_args

from placement.extensions.v1 import signals
from placement.metrics.instruments import Instruments, Subscription


def subscriptions(instruments: Instruments) -> Iterable[Subscription]:
    """Create the metrics, and yield what changes them."""
    counter, gauge = instruments.counter, instruments.gauge
    recorded = counter("events_recorded", "Changes of objects that were recorded in the history", "kind")
    pruned = counter("events_pruned", "Events that were removed from the history", "cause")
    ordered = counter("transactions_ordered", "Transactions whose events were given their positions")
    refused = counter("waits_refused", "Requests that were to wait for events, and had no place to")
    # Not the requests with 410: for Prometheus the first value of their series would be no increase.
    lost = counter("positions_lost", "Readers of events who were told that their position is lost")
    unordered = gauge("transactions_unordered", "Transactions whose events have no position yet", "livemostrecent")
    waiting = gauge("waiting_requests", "Requests that wait for events", "livesum")
    # Kept when a process ends: they are about the database.
    events = gauge("history_events", "Events in the history", "mostrecent")
    oldest = gauge("history_oldest_seconds", "Age of the oldest event in the history", "mostrecent")
    for cause in get_args(signals.PruneCause):
        pruned.labels(cause)
    # After each COMMIT with events, and the library takes long to find the metric for some labels.
    recorded_of = functools.cache(recorded.labels)

    def events_recorded(kinds: Mapping[str, int]) -> None:
        for kind, number in kinds.items():
            recorded_of(kind).inc(number)

    def history_measured(number: int, age: float) -> None:
        events.set(number)
        oldest.set(age)

    yield signals.events_recorded, events_recorded
    yield signals.events_pruned, lambda cause, number: pruned.labels(cause).inc(number)
    yield signals.history_measured, history_measured
    yield signals.transactions_unordered, unordered.set
    yield signals.transactions_ordered, ordered.inc
    yield signals.waiting_changed, waiting.set
    yield signals.wait_refused, refused.inc
    yield signals.position_lost, lost.inc
