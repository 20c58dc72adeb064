"""The tracer of this process, made of what the standard variables say (docs/observability.rst).

The SDK reads these variables itself: sampler, resource, limits, and the endpoint, headers and timeouts of an exporter.
Only which exporters there are is read here, because the SDK has no public function for it.
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
#: Seconds in which the libraries may log one line.
QUIET = 60.0
#: Seconds in which each exporter may send what is left when the process ends.
GRACE = 2.0
#: Characters of an attribute, unless a standard variable says otherwise: statements and queries may be long.
_LONGEST = 4096

#: Variables with the protocol of OTLP, the more specific one first, and what its exporters are registered as.
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_BY_PROTOCOL = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_GROUP = "opentelemetry_traces_exporter"


class NotInstalled(ImportError):
    """An exporter that the environment names is not installed."""


_exporters: list[type[SpanExporter]] = []
_making = threading.Lock()
_tracer: trace.Tracer | None = None


def choose_exporters() -> None:
    """Load the exporters that the environment names: OTLP over HTTP unless it says otherwise; raises NotInstalled.

    None are loaded if a program that instruments this one has its own.
    """
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    _exporters[:] = _named()


def _named() -> list[type[SpanExporter]]:
    return [_loaded(name.strip()) for name in os.environ.get(EXPORTERS, "").split(",")]


def _loaded(name: str) -> type[SpanExporter]:
    said = f"${EXPORTERS}: {name or 'otlp'}"
    if name.lower() in ("", "otlp"):
        variable = next((each for each in _PROTOCOLS if os.environ.get(each, "").strip()), None)
        protocol = os.environ[variable].strip() if variable else "http/protobuf"
        name = _BY_PROTOCOL.get(protocol, protocol)
        said = f"${variable}: {protocol}" if variable else said
    for entry in metadata.entry_points(group=_GROUP, name=name):
        exporter: type[SpanExporter] = entry.load()
        return exporter
    package_of = f"opentelemetry-exporter-{name.replace('_', '-')}"
    raise NotInstalled(f"{said} needs an exporter that is not installed; {package_of} may have it.")


def tracer() -> trace.Tracer:
    """Return the tracer of this process.

    It is made by the first request: a process that forks has no thread of an exporter then, and each child makes its
    own.  If a program that instruments this one has set a provider for the whole process, its tracer is returned.
    """
    global _tracer
    if _tracer is None:
        with _making:
            if _tracer is None:
                _tracer = _made()
    return _tracer


def _made() -> trace.Tracer:
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        try:
            trace.set_tracer_provider(_provider())
        except Exception as error:  # what the variables say cannot be used
            LOG.error("Nothing is traced: %s", error)
            return trace.NoOpTracer()
    return trace.get_tracer(NAME, package.version())


def _provider() -> TracerProvider:
    """Return a provider with all exporters, which sends what is left when the process ends."""
    _limit_log()
    asked = SpanLimits().max_span_attribute_length
    limits = SpanLimits(max_span_attribute_length=_LONGEST if asked is None else asked)
    provider = TracerProvider(resource=_resource(), span_limits=limits)
    exporters = [each() for each in _exporters]
    # A signal to the process must not go to a thread that the web server does not know.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        for exporter in exporters:
            provider.add_span_processor(_Processor(exporter))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return provider


def _resource() -> Resource:
    """Return what the environment says about this service; its name is "placement" if it says none."""
    resource = Resource({SERVICE_VERSION: package.version()}).merge(Resource.create())
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: NAME}))
    return resource


class _Processor(BatchSpanProcessor):
    """Sends what is left when the process ends, for ``GRACE`` seconds at most: the SDK would wait for half a minute."""

    def shutdown(self) -> None:
        """Send what is left, and end the exporter."""
        # No public function takes the time; the SDK has this one since 1.36, the oldest that setup.cfg allows.
        self._batch_processor.shutdown(timeout_millis=int(GRACE * 1000))


class _Limited(logging.Handler):
    """Passes on one line in ``QUIET`` seconds: an unreachable collector causes several for each batch."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._next = -QUIET
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the record, or count it."""
        if time.monotonic() < self._next:
            self._left_out += 1
            return
        self._next = time.monotonic() + QUIET
        said = record.getMessage()
        if record.exc_info:  # why there is no connection; not a screen of frames of libraries
            said, record.exc_info = f"{said} {record.exc_info[1]}", None
        if self._left_out:
            said, self._left_out = f"{said} (lines suppressed before this one: {self._left_out})", 0
        record.msg, record.args = said, None
        logging.getLogger().handle(record)


def _limit_log() -> None:
    log = logging.getLogger("opentelemetry")
    log.handlers[:], log.propagate = [_Limited()], False
