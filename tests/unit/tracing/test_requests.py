"""The span of a request, with its inner spans and ids."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
import webob
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from oslo_log import log as oslo_log

from placement import errors, signals
from placement.http.endpoint import endpoint
from placement.http.response import ok, stream
from placement.tracing import requests
from tests import web
from tests.spans import recording

DATABASE = SimpleNamespace(
    read=None,
    url=sa.make_url("postgresql://u:secret@db.example.org:5433/placement"),
    publish_statements=lambda: None,  # the handlers below publish some signals themselves
)
ADMIN = {"x-auth-token": "admin"}
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, UNSAMPLED = (ADMIN | {"traceparent": f"00-{TRACE}-{PARENT}-{flag}"} for flag in ("01", "00"))
LOG = logging.getLogger("placement.of_this_test")


class Pieces:
    """A stream of two pieces that may raise an error in the method ``fails``, and records that it was closed."""

    def __init__(self, fails=None):
        self.fails, self.closed, self._remaining = fails, False, [b"one", b"two"]

    def __iter__(self):
        if self.fails == "iter":
            raise OSError("gone")
        return self

    def __next__(self):
        if self.fails == "next":
            raise OSError("gone")
        if not self._remaining:
            raise StopIteration
        with signals.timed("piece"):
            return self._remaining.pop(0)

    def close(self):
        with signals.timed("close"):
            self.closed = True


@endpoint()
def laborious(_req):
    """Publish the signals of reads, searches and writes."""
    with signals.timed("index"):
        signals.reloaded("start")
        signals.refreshed(0.1, 3, 7)
    with signals.timed("search"):
        signals.searched(0.1, 0, False, "resources")
    with signals.timed("database"):
        signals.attempted(1)
        signals.executed("SELECT id FROM x WHERE a = %s", 0.25, "")
        signals.executed("(SELECT 1)", 0.0, "OperationalError")
        signals.driver_error("deadlock")
        signals.retried("deadlock")
        signals.attempted(2)
        with signals.timed("sql"):
            pass
        signals.written_jointly(4)
    return ok({})


@endpoint()
def log_a_warning(_req):
    with signals.timed("work"):
        LOG.warning("%s of 100 %%", 7)
    return ok({})


@endpoint()
def logging_of_oslo(_req):
    oslo_log.getLogger("placement.of_this_test").warning("A token is refused", color="red")
    return ok({})


@endpoint()
def missing(_req, name):
    raise errors.ProviderNotFound(uuid=name)


@endpoint()
def unavailable(_req):
    raise errors.DatabaseUnavailable()


@endpoint()
def wrong(_req):
    raise ZeroDivisionError("a secret")


@endpoint()
def searching(req):
    req.log_search(0, "required")
    return ok({})


@pytest.fixture
def pieces():
    return Pieces()


@pytest.fixture
def spans(monkeypatch):
    with recording(monkeypatch) as recorded:
        yield recorded


@pytest.fixture
def app(spans, pieces):
    @endpoint()
    def streaming(_req):
        return stream(pieces, "text/plain")

    table = {
        "/laborious": laborious,
        "/logging": log_a_warning,
        "/logging-of-oslo": logging_of_oslo,
        "/missing/{name}": missing,
        "/unavailable": unavailable,
        "/wrong": wrong,
        "/searching": searching,
        "/streaming": streaming,
    }
    return web.service({"/": {"GET": laborious}} | {path: {"GET": show} for path, show in table.items()}, DATABASE)


def test_the_span_of_a_request_describes_the_request_and_the_response(app, spans):
    headers = SAMPLED | {"user-agent": "nova", "x-openstack-request-id": "req-0f4bd6a1-5d2f-4b7e-9c50-52ff9cf4a9c1"}
    reply = web.ask(app, "GET", "/missing/x?a=b", headers, environ={"REMOTE_ADDR": "192.0.2.1"})
    [span] = spans.all()
    assert (span.name, span.kind) == ("GET /missing/{name}", SpanKind.SERVER)
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert dict(span.attributes) == {
        "http.request.method": "GET",
        "http.route": "/missing/{name}",
        "http.response.status_code": 404,
        "url.scheme": "http",
        "url.path": "/missing/x",
        "url.query": "a=b",
        "user_agent.original": "nova",
        "server.address": "localhost",
        "server.port": 80,
        "client.address": "192.0.2.1",
        "openstack.request_id": reply.headers["x-openstack-request-id"],
        "openstack.global_request_id": headers["x-openstack-request-id"],
        "placement.microversion": "1.0",
        "placement.failure": "ProviderNotFound",
    }
    assert span.status.status_code is StatusCode.UNSET  # the fault of the client


@pytest.mark.parametrize(("path", "error"), [("/unavailable", "DatabaseUnavailable"), ("/wrong", "InternalError")])
def test_a_request_that_fails_in_the_service_is_an_error(app, spans, path, error):
    assert web.ask(app, "GET", path, ADMIN).status_int >= 500
    [span] = spans.all()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == error
    assert "a secret" not in span.to_json()


@pytest.mark.parametrize(
    ("method", "path", "name"), [("GET", "/nowhere", "GET"), ("BREW", "/laborious", "HTTP /laborious")]
)
def test_no_text_of_a_client_is_in_the_name(app, spans, method, path, name):
    web.ask(app, method, path, ADMIN)
    [span] = spans.all()
    assert span.name == name
    assert span.attributes["http.request.method"] == ("GET" if method == "GET" else "_OTHER")
    assert span.attributes.get("http.request.method_original") == (None if method == "GET" else "BREW")


def test_a_truncated_request_is_refused(app, spans):
    request = webob.Request.blank("/laborious")
    del request.environ["PATH_INFO"]  # uWSGI omits variables that exceed its buffer
    assert request.get_response(app).status_int == 414
    assert spans.named("GET").attributes["http.response.status_code"] == 414


def test_the_result_of_a_search_is_in_the_span(app, spans):
    web.ask(app, "GET", "/searching", ADMIN)
    attributes = spans.named("GET /searching").attributes
    assert (attributes["placement.found"], attributes["placement.obstacle"]) == (0, "required")


def test_the_parts_of_a_request_are_spans_with_the_values_of_their_signals(app, spans):
    web.ask(app, "GET", "/laborious", ADMIN)
    request = spans.named("GET /laborious")
    assert spans.children(request) == ["index", "search", "database"]
    index, search, database = (spans.named(name) for name in ("index", "search", "database"))
    assert dict(index.attributes) == {"placement.index.missed_transactions": 3, "placement.index.providers": 7}
    assert [(event.name, dict(event.attributes)) for event in index.events] == [("reload", {"cause": "start"})]
    assert dict(search.attributes) == {
        "placement.search.candidates": 0,
        "placement.search.limited": False,
        "placement.search.obstacle": "resources",
    }
    assert dict(database.attributes) == {"placement.joint.writes": 4}
    assert [(event.name, *event.attributes.values()) for event in database.events] == [
        ("attempt", 1),
        ("database error", "deadlock"),
        ("retry", "deadlock"),
        ("attempt", 2),
    ]


def test_statements_and_commit_are_spans_with_the_text_and_without_credentials(app, spans):
    web.ask(app, "GET", "/laborious", ADMIN)
    statements = [span for span in spans.all() if span.kind is SpanKind.CLIENT]
    database_attributes = {
        "db.system.name": "postgresql",
        "db.namespace": "placement",
        "server.address": "db.example.org",
        "server.port": 5433,
    }
    text = "SELECT id FROM x WHERE a = %s"
    assert [dict(span.attributes) for span in statements] == [
        database_attributes | {"db.operation.name": "SELECT", "db.query.text": text},
        database_attributes
        | {"db.operation.name": "SELECT", "db.query.text": "(SELECT 1)", "error.type": "OperationalError"},
        database_attributes | {"db.operation.name": "COMMIT"},
    ]
    assert [span.name for span in statements] == ["SELECT", "SELECT", "COMMIT"]
    assert [span.status.status_code is StatusCode.ERROR for span in statements] == [False, True, False]
    first = statements[0]
    assert first.end_time - first.start_time == 250_000_000
    assert {span.parent.span_id for span in statements} == {spans.named("database").context.span_id}


def test_an_unsampled_request_has_no_spans(app, spans):
    assert web.ask(app, "GET", "/laborious", UNSAMPLED).status_int == 200
    assert spans.all() == []
    web.ask(app, "GET", "/laborious", SAMPLED)
    assert len(spans.all()) == 7


def test_outside_of_requests_there_are_no_spans(app, spans):
    laborious.handler(None)
    assert spans.all() == []


def test_a_span_of_another_layer_is_the_parent(app, spans):
    with trace.get_tracer("other").start_as_current_span("outer"):
        web.ask(app, "GET", "/laborious", SAMPLED)
    request = spans.named("GET /laborious")
    assert request.kind is SpanKind.INTERNAL
    assert request.parent.span_id == spans.named("outer").context.span_id


def test_without_a_server_port_the_span_has_no_port(app, spans):
    web.ask(app, "GET", "/logging", ADMIN, environ={"SERVER_PORT": ""})
    assert "server.port" not in spans.named("GET /logging").attributes


# --- streams ---


def begin_stream(app):
    """Begin a request for the stream; return the response as the server receives it."""
    return app(webob.Request.blank("/streaming", headers=ADMIN).environ, lambda *_: None)


def test_the_span_of_a_stream_ends_with_it_and_includes_its_events(app, spans, pieces):
    reply = begin_stream(app)
    assert list(reply) == [b"one", b"two"]
    assert [span.name for span in spans.all()] == ["piece", "piece"]
    assert not trace.get_current_span().get_span_context().is_valid
    reply.close()
    assert pieces.closed
    # The work of closing the stream is not part of the span.
    assert [span.name for span in spans.all()] == ["piece", "piece", "GET /streaming"]
    assert spans.children(spans.named("GET /streaming")) == ["piece", "piece"]


def test_a_stream_is_closed_before_its_first_piece(app, spans, pieces):
    begin_stream(app).close()
    assert pieces.closed
    assert [span.name for span in spans.all()] == ["GET /streaming"]


def test_a_stream_that_fails_is_an_error(app, spans, pieces):
    pieces.fails = "next"
    reply = begin_stream(app)
    with pytest.raises(OSError, match="gone"):
        next(iter(reply))
    reply.close()
    assert spans.named("GET /streaming").attributes["error.type"] == "OSError"


def test_a_response_whose_iterator_cannot_be_created_is_an_error_and_is_closed(spans):
    """The iterable may come from another layer; streams of the service are iterators."""
    pieces = Pieces("iter")
    reply = begin_stream(requests.Requests(lambda _environ, _start_response: pieces))
    with pytest.raises(OSError, match="gone"):
        next(iter(reply))
    reply.close()
    assert pieces.closed
    assert spans.named("GET").attributes["error.type"] == "OSError"


# --- log lines ---


def test_the_lines_of_a_request_end_with_the_ids_of_trace_and_span(app, spans, caplog):
    caplog.set_level(logging.INFO)
    web.ask(app, "GET", "/logging", SAMPLED)
    LOG.warning("later")
    inner, request, later = caplog.records
    work = f"{spans.named('work').context.span_id:016x}"
    assert inner.getMessage() == f"7 of 100 % trace_id: {TRACE} span_id: {work}"
    assert request.getMessage().endswith(f" trace_id: {TRACE} span_id: {request.span_id}")
    assert request.span_id == f"{spans.named('GET /logging').context.span_id:016x}"
    assert later.getMessage() == "later"
    assert not hasattr(later, "trace_id")


def test_the_lines_of_an_unsampled_request_have_the_ids_too(app, spans, caplog):
    caplog.set_level(logging.WARNING)  # the line about the request itself is of level INFO
    web.ask(app, "GET", "/logging", UNSAMPLED)
    assert f"trace_id: {TRACE} span_id: " in caplog.records[0].getMessage()


def test_a_line_of_a_logger_of_oslo_has_its_own_attributes_and_the_ids(app, spans, caplog):
    """keystonemiddleware has such loggers."""
    caplog.set_level(logging.WARNING)
    web.ask(app, "GET", "/logging-of-oslo", SAMPLED)
    [record] = caplog.records
    assert {"color", "trace_id", "span_id"} <= {*record.extra_keys}
    assert (record.color, record.trace_id) == ("red", TRACE)


def test_a_second_service_does_not_repeat_the_ids(app, spans, caplog):
    web.service({"/": {"GET": log_a_warning}}, DATABASE)
    web.ask(app, "GET", "/logging", SAMPLED)
    assert caplog.records[0].getMessage().count("trace_id") == 1
