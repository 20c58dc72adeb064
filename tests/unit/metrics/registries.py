"""Metrics of a test, in their own registry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from placement.extension import Extension
from placement.metrics.definitions import Metrics


@contextlib.contextmanager
def counting_registry(*extensions: Extension) -> Iterator[CollectorRegistry]:
    """Provide a registry with the metrics of the service and the given extensions, which count within the block."""
    registry = CollectorRegistry()
    metrics = Metrics(lambda: None, extensions, registry)
    metrics.connect()
    try:
        yield registry
    finally:
        metrics.disconnect()


def samples(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """Return the non-zero values of a metric, by the values of its labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == f"placement_{name}" and sample.value
    }


def modes(registry: CollectorRegistry) -> dict[str, str]:
    """Return the multiprocess mode of each gauge, which selects among the values of several processes."""
    gauges = [metric for metric in registry._collector_to_names if metric._type == "gauge"]
    return {metric._name.removeprefix("placement_"): metric._multiprocess_mode for metric in gauges}
