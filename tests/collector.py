"""A collector of traces: an HTTP server that decodes the requests of OpenTelemetry's exporter."""

from __future__ import annotations

import gzip
import http.server
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.children import until


class Event(NamedTuple):
    """An event of a span."""

    name: str
    attributes: Mapping[str, Any]


class Span(NamedTuple):
    """A span; ids are in hexadecimal, and ``parent`` is empty for the first one of a trace."""

    trace: str
    id: str
    parent: str
    kind: str
    name: str
    attributes: Mapping[str, Any]
    events: list[Event]
    fails: bool
    seconds: float
    resource: Mapping[str, Any]


class Collector:
    """A server that receives spans on a port of 127.0.0.1.

    Attributes:
        answers: While it is not set, requests wait.
        requests: The headers of each request, including waiting ones.
    """

    def __init__(self, server: http.server.ThreadingHTTPServer) -> None:
        self._spans: list[Span] = []
        self._lock = threading.Lock()
        self.requests: list[Mapping[str, str]] = []
        self.answers = threading.Event()
        self.answers.set()
        self.url = f"http://127.0.0.1:{server.server_port}"
        #: The variables with which a service sends its spans here, shortly after each has ended.
        self.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}

    def add(self, headers: Mapping[str, str], content: bytes) -> None:
        """Add the spans of an answered request."""
        if headers.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        with self._lock:
            self._spans += _spans(ExportTraceServiceRequest.FromString(content))

    def spans_of(self, trace: str) -> list[Span]:
        """Return the spans of a trace received so far."""
        with self._lock:
            return [span for span in self._spans if span.trace == trace]

    @property
    def spans(self) -> list[Span]:
        """All spans received so far."""
        with self._lock:
            return [*self._spans]

    def wait_for(self, trace: str, complete: Callable[[list[Span]], object] | None = None) -> list[Span]:
        """Return the spans of a trace, once they are complete: with the span of a request."""
        complete = complete or (lambda spans: any(span.kind == "SERVER" for span in spans))
        until(lambda: complete(self.spans_of(trace)), f"the trace {trace} is not complete")
        return self.spans_of(trace)


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield Span(
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    ProtoSpan.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
                    span.name,
                    _values(span.attributes),
                    [Event(event.name, _values(event.attributes)) for event in span.events],
                    span.status.code == Status.STATUS_CODE_ERROR,
                    (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                    _values(resource_spans.resource.attributes),
                )


def _values(attributes: Any) -> dict[str, Any]:
    return {attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value")) for attribute in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Provide a running collector."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            collector.requests.append(headers)
            collector.answers.wait()
            assert self.path == "/v1/traces"
            collector.add(headers, content)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(server)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield collector
        finally:
            collector.answers.set()
            server.shutdown()
            thread.join()
