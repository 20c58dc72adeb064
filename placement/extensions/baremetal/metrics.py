"""Metrics of the Bare Metal API (docs/observability.rst)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from placement.extensions.baremetal import signals
from placement.metrics.instruments import Instruments, Subscription


def subscriptions(instruments: Instruments) -> Iterable[Subscription]:
    """Create the metrics and yield the signal and handler that update them."""
    requests = instruments.counter("baremetal_allocations", "Requests for nodes, by outcome", "outcome")
    lost = instruments.counter(
        "baremetal_lost_nodes", "Nodes that other claims took while a request for them was served"
    )
    for outcome in get_args(signals.NodeOutcome):
        requests.labels(outcome)

    def node_requested(outcome: signals.NodeOutcome, lost_nodes: int) -> None:
        requests.labels(outcome).inc()
        lost.inc(lost_nodes)

    yield signals.node_requested, node_requested
