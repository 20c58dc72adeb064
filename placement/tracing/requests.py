"""A span for each request, with the attributes of OpenTelemetry's semantic conventions for HTTP servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from opentelemetry import context, propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace import SpanKind, StatusCode

from placement.http.environ import FAILURE, GLOBAL_REQUEST_ID, OUTCOME, REQUEST_ID, ROUTE, VERSION
from placement.tracing import provider

#: The methods of the conventions; any other is reported as _OTHER.
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"))
#: Environ keys and attributes that are known when a request begins.
_INITIAL = (
    ("wsgi.url_scheme", "url.scheme"),
    ("QUERY_STRING", "url.query"),
    ("HTTP_USER_AGENT", "user_agent.original"),
    ("SERVER_NAME", "server.address"),
)
#: Environ keys and attributes that are known when the response begins.
_FINAL = (
    ("REMOTE_ADDR", "client.address"),  # a layer may have set it from a proxy's header
    (ROUTE, "http.route"),
    # Named as by oslo.middleware, so that one search finds the spans of all services.
    (REQUEST_ID, "openstack.request_id"),
    (GLOBAL_REQUEST_ID, "openstack.global_request_id"),
)


class Requests:
    """The layer that creates a span for each request; it continues the client's trace."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the application's response; the span ends with it."""
        span, span_context = _start_span(environ)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            if span.is_recording():
                _describe(span, environ, int(status[:3]))
            return start_response(status, headers, *exc_info)

        token = context.attach(span_context)
        try:
            chunks = self._application(environ, start)
        except BaseException as error:
            _fail(span, type(error).__name__)
            span.end()
            raise
        finally:
            context.detach(token)
        if isinstance(chunks, list):  # complete, like nearly every response
            span.end()
            return chunks
        return _Stream(chunks, span, span_context)


class _Stream:
    """The body of a response that is produced while it is sent; ends its span afterwards.

    Not a generator: ``close`` does nothing on a generator that has not started, and the client may disconnect before
    the first chunk.
    """

    def __init__(self, chunks: Iterable[bytes], span: trace.Span, span_context: Context) -> None:
        self._chunks: Iterable[bytes] = chunks
        self._iterator: Iterator[bytes] | None = None
        self._span, self._span_context = span, span_context

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        token = context.attach(self._span_context)
        try:
            if self._iterator is None:  # not in __init__: iter() may raise, and the server would not call close
                self._iterator = iter(self._chunks)
            return next(self._iterator)
        except StopIteration:
            raise
        except Exception as error:
            _fail(self._span, type(error).__name__)
            raise
        finally:
            context.detach(token)

    def close(self) -> None:
        """End the span, then close the body: work that other layers do on close is not part of the request."""
        self._span.end()
        if close := getattr(self._chunks, "close", None):
            close()


def _start_span(environ: WSGIEnvironment) -> tuple[trace.Span, Context]:
    """Return the span of a request, and the context in which it is current.

    Samplers see the attributes set here.  The name is completed when the route is known.
    """
    method = environ["REQUEST_METHOD"]
    attributes: dict[str, str | int] = {name: environ[key] for key, name in _INITIAL if environ.get(key)}
    if (port := environ.get("SERVER_PORT", "")).isdecimal():
        attributes["server.port"] = int(port)
    attributes["url.path"] = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    attributes["http.request.method"] = method if method in _METHODS else "_OTHER"
    if method not in _METHODS:
        attributes["http.request.method_original"] = method
    parent, kind = context.get_current(), SpanKind.INTERNAL
    if not trace.get_current_span(parent).get_span_context().is_valid:  # otherwise an outer layer has started one
        parent, kind = propagate.extract(environ, parent, _HEADERS), SpanKind.SERVER
    span = provider.tracer().start_span(_name(method), parent, kind, attributes)
    return span, trace.set_span_in_context(span, parent)


def _describe(span: trace.Span, environ: WSGIEnvironment, status: int) -> None:
    """Add the attributes that are known when the response begins to the span of its request."""
    if route := environ.get(ROUTE):
        span.update_name(f"{_name(environ['REQUEST_METHOD'])} {route}")
    attributes = {name: environ[key] for key, name in _FINAL if environ.get(key)}
    attributes["http.response.status_code"] = status
    if VERSION in environ:
        attributes["placement.microversion"] = str(environ[VERSION])
    if FAILURE in environ:
        attributes["placement.failure"] = environ[FAILURE].__name__
    attributes.update({f"placement.{name}": fact for name, fact in environ.get(OUTCOME, {}).items()})
    span.set_attributes(attributes)
    if status >= 500:
        _fail(span, attributes.get("placement.failure", str(status)))


def _fail(span: trace.Span, error: str) -> None:
    span.set_attribute("error.type", error)
    span.set_status(StatusCode.ERROR)


def _name(method: str) -> str:
    return method if method in _METHODS else "HTTP"


class _Headers(Getter[WSGIEnvironment]):
    """Access to the headers in an environ, for propagators."""

    def get(self, carrier: WSGIEnvironment, key: str) -> list[str] | None:
        """Return the value of a header."""
        value = carrier.get(f"HTTP_{key.upper().replace('-', '_')}")
        return None if value is None else [value]

    def keys(self, carrier: WSGIEnvironment) -> list[str]:
        """Return the names of all headers."""
        return [key[5:].lower().replace("_", "-") for key in carrier if key.startswith("HTTP_")]


_HEADERS = _Headers()
