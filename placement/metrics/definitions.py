"""The metrics of one process, and the events that change them.  docs/observability.rst describes each metric.

Labels have few values each: a route of the table, never a path; the class of a failure, never its sentence; nothing
that a client can choose.
"""

from __future__ import annotations

import functools
import logging
import platform
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from placement import package, signals
from placement.http.environ import FAILURE, ROUTE

LOG = logging.getLogger(__name__)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_COUNTS = (0, 1, 10, 100, 1000, 10000)
_FEW = (1, 2, 3, 4, 6, 8, 12, 16, 32)
_METHODS = {"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"}

#: Which values of a gauge are shown: of processes that run ("live"), the newest, the largest, or the sum.
_GaugeMode = Literal["mostrecent", "livemostrecent", "livemax", "livesum"]

#: The label of a request that writes allocations and succeeds.
CLAIMS = {
    ("PUT", "/allocations/{consumer_uuid}"): "placed",
    ("POST", "/allocations"): "placed",
    ("DELETE", "/allocations/{consumer_uuid}"): "released",
    ("POST", "/reshaper"): "reshaped",
}


class Metrics:
    """The metrics of a process, and their subscriptions to events."""

    def __init__(self, join: Callable[[], None], registry: CollectorRegistry | None = None) -> None:
        """Create the metrics.

        Args:
            join: Called in each process before it changes a metric.
            registry: Where to register them, for use in one process.

        Raises:
            OSError: There is no space for their files.
        """
        self._join = join

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"placement_{name}", what, labels, registry=registry)

        def histogram(name: str, what: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"placement_{name}", what, labels, buckets=buckets, registry=registry)

        def gauge(name: str, what: str, mode: _GaugeMode, *labels: str) -> Gauge:
            return Gauge(f"placement_{name}", what, labels, registry=registry, multiprocess_mode=mode)

        requests = histogram("request_seconds", "Requests answered", _SECONDS, "route", "method", "status")
        claims = counter("claims", "Writes of allocations, by how they ended", "outcome")
        self._joint = histogram("claims_per_transaction", "Writes of allocations that one transaction did", _FEW)
        conflicts = counter("conflicts", "Requests answered with 409", "cause")
        retries = counter("retries", "Transactions that were run again", "cause")
        errors = counter("database_errors", "What the database or its driver refused", "error")
        searches = counter("candidate_searches", "Searches for candidates", "outcome", "obstacle")
        nodes = counter("baremetal_allocations", "Requests for bare metal nodes, by how they ended", "outcome")
        self._lost = counter("baremetal_lost_nodes", "Nodes that were taken while a request for them was served")
        expired = counter("leases_expired", "Leases whose time was over, and that were given back")
        recorded = counter("events_recorded", "Changes of objects that were recorded in the history", "kind")
        pruned = counter("events_pruned", "Events that were removed from the history", "cause")
        ordered = counter("transactions_ordered", "Transactions whose events were given their positions")
        refused = counter("waits_refused", "Requests that were to wait for events, and had no place to")
        # Not the requests with 410: for Prometheus the first value of their series would be no increase.
        lost = counter("positions_lost", "Readers of events who were told that their position is lost")
        reloads = counter("index_reloads", "Times that a worker read all providers", "cause")
        # The library takes long to find the metric for some labels, so the result is cached.
        self._request = functools.cache(requests.labels)
        self._claim = functools.cache(claims.labels)
        self._conflict = functools.cache(conflicts.labels)
        self._retry = functools.cache(retries.labels)
        self._error = functools.cache(errors.labels)
        self._search = functools.cache(searches.labels)
        self._reload = functools.cache(reloads.labels)
        self._node = functools.cache(nodes.labels)
        self._recorded = functools.cache(recorded.labels)
        self._pruned = functools.cache(pruned.labels)
        self._search_seconds = histogram("candidate_search_seconds", "Time to search for candidates", _SECONDS)
        self._found = histogram("candidates_found", "Candidates found by a search", _COUNTS)
        self._refresh_seconds = histogram("index_refresh_seconds", "Time to bring the index up to date", _SECONDS)
        self._missed = histogram("index_missed_transactions", "Transactions that a refresh made up for", _COUNTS)
        self._providers = gauge("index_providers", "Providers in the index", "livemostrecent")
        due = gauge("leases_due", "Leases whose time is over, and that are not given back yet", "livemostrecent")
        unordered = gauge("transactions_unordered", "Transactions whose events have no position yet", "livemostrecent")
        waiting = gauge("waiting_requests", "Requests that wait for events", "livesum")
        # Kept when a process ends: they are about the database.
        self._events = gauge("history_events", "Events in the history", "mostrecent")
        self._oldest = gauge("history_oldest_seconds", "Age of the oldest event in the history", "mostrecent")
        findings = gauge("doctor_findings", "What the doctor has found", "mostrecent", "check", "severity")
        self._findings = functools.cache(findings.labels)
        # Kept when a process ends: until another one has read the index, its numbers are the newest.
        self._amounts = [
            gauge(name, what, "mostrecent", "resource_class")
            for name, what in (
                ("capacity", "What consumers can hold together, in units of the class"),
                ("used", "What consumers hold, in units of the class"),
                ("reserved", "What is reserved and no part of the capacity, in units of the class"),
            )
        ]
        #: The classes whose gauges this process has set; None: none yet.
        self._classes: set[str] | None = None
        build = gauge("build_info", "1, with the version of the service and of Python", "livemax", "version", "python")
        build.labels(package.version(), platform.python_version()).set(1)
        # A counter's first value is an increase for Prometheus only if it was exported as 0 before.
        for error in get_args(signals.ErrorLabel):
            self._error(error)
        for cause in get_args(signals.RetryCause):
            self._retry(cause)
        for cause in get_args(signals.ReloadCause):
            self._reload(cause)
        for outcome in get_args(signals.NodeOutcome):
            self._node(outcome)
        for cause in get_args(signals.PruneCause):
            self._pruned(cause)
        self._subscriptions: list[tuple[signals.Signal[Any], Callable[..., None]]] = [
            (signals.answered, self._guarded(self._answered)),
            (signals.driver_error, self._guarded(lambda error: self._error(error).inc())),
            (signals.retried, self._guarded(lambda cause: self._retry(cause).inc())),
            (signals.written_jointly, self._guarded(lambda writes: self._joint.observe(writes))),
            (signals.refreshed, self._guarded(self._refreshed)),
            (signals.amounts_changed, self._guarded(self._amounts_changed)),
            (signals.reloaded, self._guarded(lambda cause: self._reload(cause).inc())),
            (signals.searched, self._guarded(self._searched)),
            (signals.consumers_released, self._guarded(self._claim("released").inc)),
            (signals.leases_expired, self._guarded(expired.inc)),
            (signals.leases_due, self._guarded(due.set)),
            (signals.node_requested, self._guarded(self._node_requested)),
            (signals.places_claimed, self._guarded(self._places_claimed)),
            (signals.events_recorded, self._guarded(self._events_recorded)),
            (signals.events_pruned, self._guarded(lambda cause, events: self._pruned(cause).inc(events))),
            (signals.history_measured, self._guarded(self._history_measured)),
            (signals.transactions_unordered, self._guarded(unordered.set)),
            (signals.transactions_ordered, self._guarded(ordered.inc)),
            (signals.waiting_changed, self._guarded(waiting.set)),
            (signals.wait_refused, self._guarded(refused.inc)),
            (signals.position_lost, self._guarded(lost.inc)),
            (signals.examined, self._guarded(self._examined)),
        ]

    def connect(self) -> None:
        """Subscribe to the events."""
        for signal, listener in self._subscriptions:
            signal.connect(listener)

    def disconnect(self) -> None:
        """Unsubscribe from the events."""
        for signal, listener in self._subscriptions:
            signal.disconnect(listener)

    def _guarded(self, listener: Callable[..., None]) -> Callable[..., None]:
        """Wrap a listener: the process joins first, and a full disk ends its metrics instead of failing a request."""

        def guarded(*facts: Any) -> None:
            try:
                self._join()
                listener(*facts)
            except OSError as error:
                self.disconnect()
                LOG.error("This process has no metrics from now on: %s", error)

        return guarded

    def _answered(self, environ: Mapping[str, Any], status: int, seconds: float) -> None:
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

    def _searched(self, seconds: float, found: int, limited: bool, obstacle: str) -> None:
        self._search("none" if obstacle else "limited" if limited else "all", obstacle).inc()
        self._search_seconds.observe(seconds)
        self._found.observe(found)

    def _node_requested(self, outcome: signals.NodeOutcome, lost: int) -> None:
        self._node(outcome).inc()
        self._lost.inc(lost)

    def _places_claimed(self, outcome: str, number: int) -> None:
        self._claim(_in_lower_case(outcome)).inc(number)

    def _events_recorded(self, kinds: Mapping[str, int]) -> None:
        for kind, number in kinds.items():
            self._recorded(kind).inc(number)

    def _history_measured(self, events: int, oldest: float) -> None:
        self._events.set(events)
        self._oldest.set(oldest)

    def _examined(self, counts: Mapping[tuple[str, str], int]) -> None:
        for (check, severity), number in counts.items():
            self._findings(check, severity).set(number)

    def _refreshed(self, seconds: float, missed: int, providers: int) -> None:
        self._refresh_seconds.observe(seconds)
        if missed:
            self._missed.observe(missed)
        self._providers.set(providers)

    def _amounts_changed(self, totals: Mapping[str, tuple[float, float, float]]) -> None:
        """Set the gauges of every class that some provider has, and of those that were set before.

        All of them, also those that are as this process has last set them: another process may have set them since.
        """
        # An earlier process may have set any class, so the first time all are set.
        before = totals.keys() if self._classes is None else self._classes
        self._classes = {name for name, amounts in totals.items() if any(amounts)} | before
        for name in self._classes:
            for gauge, amount in zip(self._amounts, totals.get(name, (0.0, 0.0, 0.0)), strict=True):
                gauge.labels(name).set(amount)


@functools.cache
def _label(failure: type[BaseException] | None) -> str:
    """Return the label of a failure: ``capacity_exceeded`` for CapacityExceeded."""
    return _in_lower_case(failure.__name__) if failure else "other"


def _in_lower_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
