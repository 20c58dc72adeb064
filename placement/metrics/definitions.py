"""The metrics of one process, and the events that change them.  docs/observability.rst describes each metric."""

from __future__ import annotations

import functools
import itertools
import logging
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

from prometheus_client import CollectorRegistry

from placement import package, signals
from placement.extension import Extension
from placement.http.environ import FAILURE, ROUTE
from placement.metrics.instruments import Instruments, Subscription

LOG = logging.getLogger(__name__)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_COUNTS = (0, 1, 10, 100, 1000, 10000)
_SMALL_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 32)
_METHODS = {"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"}

#: The outcome of a successful write of allocations, by method and route.
CLAIMS = {
    ("PUT", "/allocations/{consumer_uuid}"): "placed",
    ("POST", "/allocations"): "placed",
    ("DELETE", "/allocations/{consumer_uuid}"): "released",
    ("POST", "/reshaper"): "reshaped",
}


class Metrics:
    """The metrics of a process, and their subscriptions to events."""

    def __init__(
        self, join: Callable[[], None], extensions: Iterable[Extension] = (), registry: CollectorRegistry | None = None
    ) -> None:
        """Create the metrics.

        Args:
            join: A callback before each change of a metric, by which every process joins the directory.
            extensions: The extensions that may add metrics.
            registry: The registry, for use in one process.

        Raises:
            OSError: The disk has no space for the files.
        """
        self._join = join
        instruments = Instruments(registry)
        added = (extension.metrics(instruments) for extension in extensions if extension.metrics)
        self._subscriptions = [
            (signal, self._guard(listener))
            for signal, listener in itertools.chain(_Core(instruments).subscriptions(), *added)
        ]

    def connect(self) -> None:
        """Subscribe to the events."""
        for signal, listener in self._subscriptions:
            signal.connect(listener)

    def disconnect(self) -> None:
        """Unsubscribe from the events."""
        for signal, listener in self._subscriptions:
            signal.disconnect(listener)

    def _guard(self, listener: Callable[..., object]) -> Callable[..., None]:
        """Return a listener that first joins the directory.  A full disk disables metrics, and fails no request."""

        def call(*facts: Any) -> None:
            try:
                self._join()
                listener(*facts)
            except OSError as error:
                self.disconnect()
                LOG.error("This process stops recording metrics: %s", error)

        return call


class _Core:
    """The metrics of the Placement API."""

    def __init__(self, instruments: Instruments) -> None:
        counter, histogram, gauge = instruments.counter, instruments.histogram, instruments.gauge
        self._joint = histogram("claims_per_transaction", "Writes of allocations per transaction", _SMALL_COUNTS)
        self._expired = counter("leases_expired", "Expired leases that were released")
        # The library is slow at finding the metric for given labels, so the result is cached.
        cached = functools.cache
        self._request = cached(
            histogram("request_seconds", "Seconds per request", _SECONDS, "route", "method", "status").labels
        )
        self._claim = cached(counter("claims", "Writes of allocations, by outcome", "outcome").labels)
        self._conflict = cached(counter("conflicts", "Requests refused with 409", "cause").labels)
        self._retry = cached(counter("retries", "Retries of transactions", "cause").labels)
        self._error = cached(counter("database_errors", "Errors of the database or its driver", "error").labels)
        self._search = cached(counter("candidate_searches", "Searches for candidates", "outcome", "obstacle").labels)
        self._reload = cached(counter("index_reloads", "Reloads of the index by a worker", "cause").labels)
        self._search_seconds = histogram("candidate_search_seconds", "Seconds per search for candidates", _SECONDS)
        self._candidates = histogram("candidates_found", "Candidates found by a search", _COUNTS)
        self._refresh_seconds = histogram("index_refresh_seconds", "Seconds per refresh of the index", _SECONDS)
        self._missed = histogram("index_missed_transactions", "Transactions applied by a refresh", _COUNTS)
        self._providers = gauge("index_providers", "Providers in the index", "livemostrecent")
        self._due = gauge("leases_due", "Expired leases that are not released yet", "livemostrecent")
        # "mostrecent" keeps the values of an ended process: they are the newest until another one reads the index.
        self._amounts = [
            gauge(name, description, "mostrecent", "resource_class")
            for name, description in (
                ("capacity", "Capacity of all providers, in units of the class"),
                ("used", "Usage of all providers, in units of the class"),
                ("reserved", "Reserved amounts, which are not part of the capacity, in units of the class"),
            )
        ]
        #: The classes whose gauges this process has set; None before the first time.
        self._classes: set[str] | None = None
        build = gauge("build_info", "1, with the version of the service and of Python", "livemax", "version", "python")
        build.labels(package.version(), platform.python_version()).set(1)
        # Export 0 for each label: Prometheus would not see the first increase of a counter that starts at 1.
        for error in get_args(signals.ErrorLabel):
            self._error(error)
        for cause in get_args(signals.RetryCause):
            self._retry(cause)
        for cause in get_args(signals.ReloadCause):
            self._reload(cause)

    def subscriptions(self) -> Iterator[Subscription]:
        """Yield the events, each with the listener that changes metrics."""
        yield signals.answered, self._count_response
        yield signals.driver_error, lambda error: self._error(error).inc()
        yield signals.retried, lambda cause: self._retry(cause).inc()
        yield signals.written_jointly, self._joint.observe
        yield signals.refreshed, self._observe_refresh
        yield signals.amounts_changed, self._set_amounts
        yield signals.reloaded, lambda cause: self._reload(cause).inc()
        yield signals.searched, self._count_search
        yield signals.claims_answered, lambda outcome, number: self._claim(_snake_case(outcome)).inc(number)
        yield signals.leases_expired, self._expired.inc
        yield signals.leases_due, self._due.set

    def _count_response(self, environ: Mapping[str, Any], status: int, seconds: float) -> None:
        method, route = environ["REQUEST_METHOD"], environ.get(ROUTE, "none")
        self._request(route, method if method in _METHODS else "other", str(status)).observe(seconds)
        success = CLAIMS.get((method, route))
        if status < 400:
            if success is not None:
                self._claim(success).inc()
            return
        cause = _label(environ.get(FAILURE))
        if success is not None:
            self._claim(cause).inc()
        if status == 409:
            self._conflict(cause).inc()

    def _count_search(self, seconds: float, candidates: int, limited: bool, obstacle: str) -> None:
        self._search("none" if obstacle else "limited" if limited else "all", obstacle).inc()
        self._search_seconds.observe(seconds)
        self._candidates.observe(candidates)

    def _observe_refresh(self, seconds: float, missed: int, providers: int) -> None:
        self._refresh_seconds.observe(seconds)
        if missed:
            self._missed.observe(missed)
        self._providers.set(providers)

    def _set_amounts(self, totals: Mapping[str, tuple[float, float, float]]) -> None:
        """Set the gauges of every class with amounts, and of every class that this process has set before.

        Unchanged gauges are set as well, because another process may have set them in the meantime.
        """
        # An earlier process may have set any class, so the first call sets all of them.
        previous = totals.keys() if self._classes is None else self._classes
        self._classes = {name for name, amounts in totals.items() if any(amounts)} | previous
        for name in self._classes:
            for gauge, amount in zip(self._amounts, totals.get(name, (0.0, 0.0, 0.0)), strict=True):
                gauge.labels(name).set(amount)


@functools.cache
def _label(failure: type[BaseException] | None) -> str:
    """Return the label of a failure: ``capacity_exceeded`` for CapacityExceeded."""
    return _snake_case(failure.__name__) if failure else "other"


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
