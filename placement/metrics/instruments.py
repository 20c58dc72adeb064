"""How the core and its extensions create metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from placement.errors import StartError
from placement.signals import Signal

#: An event, and the function that is called with its facts.
Subscription = tuple[Signal[Any], Callable[..., object]]

#: Which values of a gauge are shown: of processes that run ("live"), the newest, the largest, or the sum.
GaugeMode = Literal["mostrecent", "livemostrecent", "livemax", "livesum"]


class Instruments:
    """Creates metrics whose names begin with ``placement_``.

    Labels have few values each: a route of the table, never a path; the class of a failure, never its sentence; nothing
    that a client can choose.

    Raises:
        StartError: A name is used twice.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register the metrics in this registry, for use in one process; None: their values are only in its files."""
        self._registry = registry
        self._names: set[str] = set()

    def _new(self, name: str) -> str:
        # The files of a process have one value for a name, and would mix the counts of two metrics.
        if name in self._names:
            raise StartError(f"Two metrics have the name placement_{name}.")
        self._names.add(name)
        return f"placement_{name}"

    def counter(self, name: str, description: str, *labels: str) -> Counter:
        """Create a counter; ``_total`` is added to its name."""
        return Counter(self._new(name), description, labels, registry=self._registry)

    def histogram(self, name: str, description: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        """Create a histogram with the upper ends of its buckets."""
        return Histogram(self._new(name), description, labels, buckets=buckets, registry=self._registry)

    def gauge(self, name: str, description: str, mode: GaugeMode, *labels: str) -> Gauge:
        """Create a gauge."""
        return Gauge(self._new(name), description, labels, registry=self._registry, multiprocess_mode=mode)
