"""Metrics of the history and of its readers (docs/observability.rst)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import get_args

from placement.extensions.v1 import signals
from placement.metrics.instruments import Instruments, Subscription


def subscriptions(instruments: Instruments) -> Iterable[Subscription]:
    """Create the metrics; yield the signals that change them, each with its handler."""
    counter, gauge = instruments.counter, instruments.gauge
    recorded = counter("events_recorded", "Changes of objects recorded in the history", "kind")
    pruned = counter("events_pruned", "Events removed from the history", "cause")
    ordered = counter("transactions_ordered", "Transactions whose events were assigned positions")
    refused = counter("waits_refused", "Requests answered without waiting for events, because too many were waiting")
    # The counter of 410 responses is not enough: Prometheus sees no increase in the first value of a series.
    lost = counter("positions_lost", "Requests for events after a position that was lost")
    unordered = gauge("transactions_unordered", "Transactions whose events have no position yet", "livemostrecent")
    waiting = gauge("waiting_requests", "Requests waiting for events", "livesum")
    # These values outlive a worker process, since they describe the database.
    events = gauge("history_events", "Events in the history", "mostrecent")
    oldest = gauge("history_oldest_seconds", "Age of the oldest event in the history", "mostrecent")
    for cause in get_args(signals.PruneCause):
        pruned.labels(cause)
    # Called after each COMMIT with events; looking up a metric by its labels is slow in the library.
    recorded_by_kind = functools.cache(recorded.labels)

    def events_recorded(kinds: Mapping[str, int]) -> None:
        for kind, number in kinds.items():
            recorded_by_kind(kind).inc(number)

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
