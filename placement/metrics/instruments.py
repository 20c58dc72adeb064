"""Factories for the metrics of the core and of extensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from placement.errors import StartError
from placement.signals import Signal

#: An event and its listener.
Subscription = tuple[Signal[Any], Callable[..., object]]

#: The exported value of a gauge: the most recent one, the maximum or the sum, "live" of running processes only.
GaugeMode = Literal["mostrecent", "livemostrecent", "livemax", "livesum"]


class Instruments:
    """A factory of metrics whose names begin with ``placement_``.

    Labels must have few values: the route instead of the path, the class of a failure instead of its message, and
    nothing that clients choose.

    Raises:
        StartError: A name is used twice.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Create a factory for a registry of one process; None keeps the values only in the files of the process."""
        self._registry = registry
        self._names: set[str] = set()

    def _new_name(self, name: str) -> str:
        # The files of a process are keyed by name, and would mix up two metrics with the same name.
        if name in self._names:
            raise StartError(f"Two metrics have the name placement_{name}.")
        self._names.add(name)
        return f"placement_{name}"

    def counter(self, name: str, description: str, *labels: str) -> Counter:
        """Create a counter; the library appends ``_total`` to its name."""
        return Counter(self._new_name(name), description, labels, registry=self._registry)

    def histogram(self, name: str, description: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        """Create a histogram; ``buckets`` are the inclusive upper bounds."""
        return Histogram(self._new_name(name), description, labels, buckets=buckets, registry=self._registry)

    def gauge(self, name: str, description: str, mode: GaugeMode, *labels: str) -> Gauge:
        """Create a gauge."""
        return Gauge(self._new_name(name), description, labels, registry=self._registry, multiprocess_mode=mode)
