"""Request ids and the request log (docs: api-request-ids, layers)."""

from __future__ import annotations

import logging
import re

import pytest
from oslo_context import context as oslo_context

from placement import errors, signals
from placement.http.endpoint import endpoint
from placement.http.environ import REQUEST_ID
from placement.http.response import no_content, ok
from placement.middleware.request_log import TIMINGS
from tests import web

ADMIN = {"x-auth-token": "admin"}
UUID = "0f4bd6a1-5d2f-4b7e-9c50-52ff9cf4a9c1"


@endpoint()
def ids(req):
    context = oslo_context.get_current()
    return ok([req.environ[REQUEST_ID], context.request_id, context.global_request_id, context.user_id])


@endpoint()
def show_nothing(_req):
    return no_content()


@endpoint()
def work(_req):
    """A handler that publishes timings and a retry, as databases and searches do."""
    for seconds in (0.25, 0.5):
        signals.timing("sql", seconds)
    signals.retried("deadlock")
    return ok({})


@endpoint()
def wait(_req):
    """A handler whose request asked it to wait for an hour."""
    signals.timing("wait", 3600.0)
    return no_content()


@endpoint()
def search(req, result):
    req.log_search(int(result), "" if int(result) else "resources")
    return ok({})


@endpoint()
def fail(_req, name):
    raise errors.ProviderNotFound(uuid=name)


TABLE = {
    "/": {"GET": ids},
    "/ids": {"GET": ids},
    "/nothing": {"GET": show_nothing},
    "/laborious": {"GET": work},
    "/waiting": {"GET": wait},
    "/missing/{name}": {"GET": fail},
    "/searching/{result}": {"GET": search},
}


@pytest.fixture(scope="module")
def app():
    return web.service(TABLE)


def lines(caplog, level):
    return [
        record.getMessage() for record in caplog.records if record.levelno == level and "request_log" in record.name
    ]


@pytest.mark.parametrize(
    ("result", "line_end", "fields"),
    [
        ("12", "microversion: 1.0 found: 12", {"found": 12}),
        ("0", "microversion: 1.0 found: 0 obstacle: resources", {"found": 0, "obstacle": "resources"}),
    ],
)
def test_the_line_of_a_search_contains_its_result(app, caplog, result, line_end, fields):
    caplog.set_level(logging.INFO)
    web.ask(app, "GET", f"/searching/{result}", ADMIN)
    web.ask(app, "GET", "/nothing", ADMIN)
    search, other = [record for record in caplog.records if "request_log" in record.name]
    assert search.getMessage().endswith(line_end)
    assert fields.items() <= search.extra.items()
    assert ("obstacle" in search.extra) == ("obstacle" in fields)
    assert "found" not in other.getMessage()
    assert "found" not in other.extra


def test_the_request_id_is_in_the_context_and_in_the_response(app):
    answer = web.ask(app, "GET", "/ids", ADMIN)
    request_id = answer.headers["x-openstack-request-id"]
    assert answer.json == [request_id, request_id, None, "admin"]
    assert web.ask(app, "GET", "/ids", ADMIN).json[0] != request_id


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"req-{UUID}", f"req-{UUID}"),
        (f"req-{UUID.upper()}", f"req-{UUID.upper()}"),
        (UUID, None),
        (f"req-{UUID}x", None),
        (f"xreq-{UUID}", None),
        ("req-", None),
    ],
)
def test_the_global_request_id_is_in_the_context_only(app, header, expected):
    answer = web.ask(app, "GET", "/ids", ADMIN, environ={"HTTP_X_OPENSTACK_REQUEST_ID": header})
    assert answer.json[2] == expected
    assert answer.headers["x-openstack-request-id"] != header


def test_a_request_is_one_line(app, caplog):
    caplog.set_level(logging.INFO)
    answer = web.ask(
        app,
        "GET",
        "/ids?name=%E2%98%83&x=1",
        ADMIN | {"openstack-api-version": "placement 1.7"},
        environ={"REMOTE_ADDR": "192.0.2.1", "SCRIPT_NAME": "/placement"},
    )
    length = answer.headers["content-length"]
    request = '192.0.2.1 "GET /placement/ids?name=%E2%98%83&x=1"'
    assert lines(caplog, logging.INFO) == [f"{request} status: 200 len: {length} microversion: 1.7"]
    assert lines(caplog, logging.DEBUG) == []


def test_the_start_of_a_request_is_logged_in_debug_mode(app, caplog):
    caplog.set_level(logging.DEBUG)
    web.ask(app, "GET", "/nothing", ADMIN)
    assert lines(caplog, logging.DEBUG) == ['Starting request: - "GET /nothing"']


def test_a_version_that_was_not_negotiated_is_logged_as_a_dash(app, caplog):
    caplog.set_level(logging.INFO)
    web.ask(app, "GET", "/nothing")
    (line,) = lines(caplog, logging.INFO)
    assert "status: 401" in line
    assert line.endswith("microversion: -")


def test_a_path_cannot_forge_a_log_line(app, caplog):
    caplog.set_level(logging.INFO)
    web.ask(app, "GET", "/a%0D%0Ab%22", ADMIN)
    (line,) = lines(caplog, logging.INFO)
    assert '"GET /a%0D%0Ab%22"' in line


@pytest.mark.parametrize("accept", [None, "", "*/*", " */* "])
def test_json_is_the_default_media_type(app, accept):
    for path, status in (("/nope", 404), ("/ids", 200)):
        answer = web.ask(app, "GET", path, ADMIN, environ=None if accept is None else {"HTTP_ACCEPT": accept})
        assert (answer.status_int, answer.headers["content-type"]) == (status, "application/json")


def test_a_log_line_has_the_id_of_its_own_request(app):
    """The log formatter uses the latest context of the thread, which an earlier request may have left."""
    request_ids = []

    class Formatter(logging.Handler):
        def emit(self, _record):
            request_ids.append(oslo_context.get_current().request_id)

    handler = Formatter()
    logger = logging.getLogger("placement.middleware.request_log")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        answers = [web.ask(app, "GET", "/ids", ADMIN), web.ask(app, "GET", "/ids")]
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert request_ids == [answer.headers["x-openstack-request-id"] for answer in answers for _ in range(2)]


# --- the fields of a record ---


def record_fields(caplog):
    (record,) = [candidate for candidate in caplog.records if "request_log" in candidate.name]
    return record.extra


def test_a_log_record_has_its_values_as_fields(app, caplog):
    caplog.set_level(logging.INFO)
    answer = web.ask(app, "GET", "/missing/some", ADMIN, environ={"REMOTE_ADDR": "192.0.2.1"})
    fields = record_fields(caplog)
    assert 0 < fields.pop("seconds") < 60
    assert fields == {
        "client": "192.0.2.1",
        "method": "GET",
        "route": "/missing/{name}",
        "status": 404,
        "length": answer.content_length,
        "microversion": "1.0",
        "failure": "ProviderNotFound",
    }


def test_a_log_record_has_no_values_of_layers_that_did_not_run(app, caplog):
    caplog.set_level(logging.INFO)
    web.ask(app, "GET", "/ids")
    fields = record_fields(caplog)
    assert (fields["status"], fields["route"], fields["microversion"]) == (401, None, "-")
    assert fields["failure"] == "Unauthenticated"
    assert "parts" not in fields


# --- slow requests ---


@pytest.fixture
def service_with_threshold():
    """Return a function that creates a service with a threshold, in seconds, for slow requests."""
    yield lambda threshold: web.service(TABLE, api__slow_request_threshold=threshold)
    TIMINGS.disconnect()


def test_a_slow_request_is_logged_as_a_warning_with_its_timings(service_with_threshold, caplog):
    slow = service_with_threshold(1e-9)
    caplog.set_level(logging.WARNING)
    web.ask(slow, "GET", "/laborious", ADMIN)
    (line,) = lines(caplog, logging.WARNING)
    pattern = r'"GET /laborious" status: 200 len: 2 microversion: 1.0 seconds: \d+\.\d{3} parts: (.*)'
    parts = re.search(pattern, line)[1].split(", ")
    assert parts[:2] == ["sql 0.750 in 2", "retry after deadlock 0.000"]
    assert re.fullmatch(r"encode \d+\.\d{3}", parts[2])
    timings = record_fields(caplog)["parts"]
    assert timings["sql"] == {"seconds": 0.75, "times": 2}
    assert timings.keys() == {"sql", "retry after deadlock", "encode"}


def test_timings_of_an_earlier_request_are_not_reported_again(service_with_threshold, caplog):
    slow = service_with_threshold(1e-9)
    web.ask(slow, "GET", "/laborious", ADMIN)
    caplog.clear()
    web.ask(slow, "GET", "/missing/x", ADMIN)
    (line,) = lines(caplog, logging.WARNING)
    assert line.endswith("parts: -")


def test_a_request_is_not_slow_because_it_was_asked_to_wait(service_with_threshold, caplog):
    caplog.set_level(logging.INFO)
    slow = service_with_threshold(1e-9)
    web.ask(slow, "GET", "/waiting", ADMIN)
    (line,) = lines(caplog, logging.INFO)
    assert line.endswith("microversion: 1.0")
    caplog.clear()
    web.ask(slow, "GET", "/nothing", ADMIN)
    assert len(lines(caplog, logging.WARNING)) == 1


def test_a_request_below_the_threshold_is_logged_without_timings(service_with_threshold, caplog):
    caplog.set_level(logging.INFO)
    web.ask(service_with_threshold(3600), "GET", "/laborious", ADMIN)
    (line,) = lines(caplog, logging.INFO)
    assert line.endswith("microversion: 1.0")
    assert "parts" not in record_fields(caplog)


def test_without_a_threshold_timings_are_not_collected(app):
    web.ask(app, "GET", "/laborious", ADMIN)
    assert not signals.timing.connected
