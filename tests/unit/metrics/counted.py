"""Metrics in a separate registry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from placement.extension import Extension
from placement.metrics.definitions import Metrics


@contextlib.contextmanager
def counted(*extensions: Extension) -> Iterator[CollectorRegistry]:
    """Return a registry that counts the metrics of the service and these extensions."""
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
    """Return for each gauge which values of several processes are shown."""
    gauges = [metric for metric in registry._collector_to_names if metric._type == "gauge"]
    return {metric._name.removeprefix("placement_"): metric._multiprocess_mode for metric in gauges}
