"""A span for each request, with the attributes of OpenTelemetry's semantic conventions for HTTP servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from opentelemetry import context, propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace import SpanKind, StatusCode

from placement.http.environ import FAILURE, GLOBAL_REQUEST_ID, REQUEST_ID, ROUTE, SEARCH, VERSION
from placement.tracing import provider

#: Another method could be any text.
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"))
#: What the client has sent, by keys of the environ, and its attributes.
_SENT = (
    ("wsgi.url_scheme", "url.scheme"),
    ("QUERY_STRING", "url.query"),
    ("HTTP_USER_AGENT", "user_agent.original"),
    ("SERVER_NAME", "server.address"),
)
#: What is known once the request is answered.
_FOUND_OUT = (
    ("REMOTE_ADDR", "client.address"),  # a layer may have taken it from the header of a proxy
    (ROUTE, "http.route"),
    # As oslo.middleware names them, so that one search finds the spans of all services.
    (REQUEST_ID, "openstack.request_id"),
    (GLOBAL_REQUEST_ID, "openstack.global_request_id"),
)


class Requests:
    """The layer.  A trace that the client has begun is continued."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application; the span ends with it."""
        span, within = _begun(environ)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            if span.is_recording():
                _describe(span, environ, int(status[:3]))
            return start_response(status, headers, *exc_info)

        token = context.attach(within)
        try:
            reply = self._application(environ, start)
        except BaseException as error:
            _fail(span, type(error).__name__)
            span.end()
            raise
        finally:
            context.detach(token)
        if isinstance(reply, list):  # complete, as nearly every reply is
            span.end()
            return reply
        return _Reply(reply, span, within)


class _Reply:
    """A reply that is made while it is sent; then its span ends.

    Not a generator: one that has not begun ignores ``close``, and the client may go away before the first piece.
    """

    def __init__(self, reply: Iterable[bytes], span: trace.Span, within: Context) -> None:
        self._reply: Iterable[bytes] = reply
        self._pieces: Iterator[bytes] | None = None
        self._span, self._within = span, within

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        token = context.attach(self._within)
        try:
            if self._pieces is None:  # iter() may raise, and the server closes only a reply that it has
                self._pieces = iter(self._reply)
            return next(self._pieces)
        except StopIteration:
            raise
        except Exception as error:
            _fail(self._span, type(error).__name__)
            raise
        finally:
            context.detach(token)

    def close(self) -> None:
        """End the span, and close the reply: what other layers do then is no part of the request."""
        self._span.end()
        if close := getattr(self._reply, "close", None):
            close()


def _begun(environ: WSGIEnvironment) -> tuple[trace.Span, Context]:
    """Return the span of a request, and the context in which it is the current one.

    Samplers see what the client has sent.  The name is complete when the route is known.
    """
    method = environ["REQUEST_METHOD"]
    attributes: dict[str, str | int] = {name: environ[key] for key, name in _SENT if environ.get(key)}
    if (port := environ.get("SERVER_PORT", "")).isdecimal():
        attributes["server.port"] = int(port)
    attributes["url.path"] = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    attributes["http.request.method"] = method if method in _METHODS else "_OTHER"
    if method not in _METHODS:
        attributes["http.request.method_original"] = method
    parent, kind = context.get_current(), SpanKind.INTERNAL
    if not trace.get_current_span(parent).get_span_context().is_valid:  # else another layer has begun a span for it
        parent, kind = propagate.extract(environ, parent, _HEADERS), SpanKind.SERVER
    span = provider.tracer().start_span(_word(method), parent, kind, attributes)
    return span, trace.set_span_in_context(span, parent)


def _describe(span: trace.Span, environ: WSGIEnvironment, status: int) -> None:
    """Add what was found out about a request to its span."""
    if route := environ.get(ROUTE):
        span.update_name(f"{_word(environ['REQUEST_METHOD'])} {route}")
    attributes = {name: environ[key] for key, name in _FOUND_OUT if environ.get(key)}
    attributes["http.response.status_code"] = status
    if VERSION in environ:
        attributes["placement.microversion"] = str(environ[VERSION])
    if FAILURE in environ:
        attributes["placement.failure"] = environ[FAILURE].__name__
    attributes.update({f"placement.{name}": fact for name, fact in environ.get(SEARCH, {}).items()})
    span.set_attributes(attributes)
    if status >= 500:
        _fail(span, attributes.get("placement.failure", str(status)))


def _fail(span: trace.Span, error: str) -> None:
    span.set_attribute("error.type", error)
    span.set_status(StatusCode.ERROR)


def _word(method: str) -> str:
    return method if method in _METHODS else "HTTP"


class _Headers(Getter[WSGIEnvironment]):
    """Finds headers in the environ, for propagators."""

    def get(self, carrier: WSGIEnvironment, key: str) -> list[str] | None:
        """Return the value of a header."""
        value = carrier.get(f"HTTP_{key.upper().replace('-', '_')}")
        return None if value is None else [value]

    def keys(self, carrier: WSGIEnvironment) -> list[str]:
        """Return the names of all headers."""
        return [key[5:].lower().replace("_", "-") for key in carrier if key.startswith("HTTP_")]


_HEADERS = _Headers()
