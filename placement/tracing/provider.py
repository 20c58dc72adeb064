"""The tracer of this process, configured by the standard environment variables (docs/observability.rst).

The SDK itself reads the variables for sampler, resource, limits, and the endpoint, headers and timeouts of an exporter.
This module reads the variables that select exporters, for which the SDK has no public function.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from importlib import metadata

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from placement import package
from placement.tracing import EXPORTERS

LOG = logging.getLogger(__name__)

NAME = "placement"
#: Seconds between two log lines of the libraries.
QUIET = 60.0
#: Seconds for which each exporter may send remaining spans when the process ends.
GRACE = 2.0
#: Default limit on the characters of an attribute, because statements and queries may be long.
_MAX_ATTRIBUTE_LENGTH = 4096

#: Variables with the protocol of OTLP, the more specific one first.
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
#: The entry point of the OTLP exporter, by protocol.
_OTLP_EXPORTERS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_GROUP = "opentelemetry_traces_exporter"


class NotInstalled(ImportError):
    """An exporter that the environment names is not installed."""


_exporters: list[type[SpanExporter]] = []
_lock = threading.Lock()
_tracer: trace.Tracer | None = None


def choose_exporters() -> None:
    """Load the exporters that the environment selects, by default OTLP over HTTP, or raise NotInstalled.

    An instrumentation that has already set a tracer provider takes precedence.
    """
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    _exporters[:] = _load_exporters()


def _load_exporters() -> list[type[SpanExporter]]:
    return [_load_exporter(name.strip()) for name in os.environ.get(EXPORTERS, "").split(",")]


def _load_exporter(name: str) -> type[SpanExporter]:
    setting = f"${EXPORTERS}: {name or 'otlp'}"
    if name.lower() in ("", "otlp"):
        variable = next((variable for variable in _PROTOCOLS if os.environ.get(variable, "").strip()), None)
        protocol = os.environ[variable].strip() if variable else "http/protobuf"
        name = _OTLP_EXPORTERS.get(protocol, protocol)
        setting = f"${variable}: {protocol}" if variable else setting
    for entry in metadata.entry_points(group=_GROUP, name=name):
        exporter: type[SpanExporter] = entry.load()
        return exporter
    distribution = f"opentelemetry-exporter-{name.replace('_', '-')}"
    raise NotInstalled(f"{setting} needs an exporter that is not installed; {distribution} may contain it.")


def tracer() -> trace.Tracer:
    """Return the tracer of this process, from the provider of an instrumentation if one is set.

    The first request creates it, so that a forking process has no exporter threads and each child starts its own.
    """
    global _tracer
    if _tracer is None:
        with _lock:
            if _tracer is None:
                _tracer = _create_tracer()
    return _tracer


def _create_tracer() -> trace.Tracer:
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        try:
            trace.set_tracer_provider(_create_provider())
        except Exception as error:  # an environment variable is invalid
            LOG.error("Nothing is traced: %s", error)
            return trace.NoOpTracer()
    return trace.get_tracer(NAME, package.version())


def _create_provider() -> TracerProvider:
    """Return a provider with all exporters; it sends the remaining spans when the process ends."""
    _limit_log()
    configured = SpanLimits().max_span_attribute_length
    limits = SpanLimits(max_span_attribute_length=_MAX_ATTRIBUTE_LENGTH if configured is None else configured)
    provider = TracerProvider(resource=_resource(), span_limits=limits)
    exporters = [exporter() for exporter in _exporters]
    # Threads of exporters inherit the mask: signals must go to threads that the web server knows.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        for exporter in exporters:
            provider.add_span_processor(_Processor(exporter))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return provider


def _resource() -> Resource:
    """Return the resource described by the environment, with the default name "placement"."""
    resource = Resource({SERVICE_VERSION: package.version()}).merge(Resource.create())
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: NAME}))
    return resource


class _Processor(BatchSpanProcessor):
    """A processor that sends remaining spans for up to ``GRACE`` seconds at exit; the SDK would wait half a minute."""

    def shutdown(self) -> None:
        """Send the remaining spans, and stop the exporter."""
        # No public function takes a timeout; this one exists since SDK 1.36, the oldest that setup.cfg allows.
        self._batch_processor.shutdown(timeout_millis=int(GRACE * 1000))


class _RateLimit(logging.Handler):
    """A handler that passes on one line per ``QUIET`` seconds: an unreachable collector causes several per batch."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._next = -QUIET
        self._suppressed = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the record, or count it as suppressed."""
        if time.monotonic() < self._next:
            self._suppressed += 1
            return
        self._next = time.monotonic() + QUIET
        message = record.getMessage()
        if record.exc_info:  # the reason without the library's traceback
            message, record.exc_info = f"{message} {record.exc_info[1]}", None
        if self._suppressed:
            message, self._suppressed = f"{message} (lines suppressed before this one: {self._suppressed})", 0
        record.msg, record.args = message, None
        logging.getLogger().handle(record)


def _limit_log() -> None:
    log = logging.getLogger("opentelemetry")
    log.handlers[:], log.propagate = [_RateLimit()], False
