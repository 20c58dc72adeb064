"""Routing, the checks before it, and the responses of an application."""

from __future__ import annotations

import dataclasses
import threading

import pytest
import webob

from placement import errors
from placement import microversion as mv
from placement.http.application import Application
from placement.http.endpoint import endpoint
from placement.http.response import NOW, created, ok
from placement.http.service import Service
from placement.policy import Policy
from tests import web


@endpoint()
def root(_req):
    return ok({}, NOW)


@endpoint()
def show(_req, name):
    return ok({"name": name})


@endpoint()
def show_both(_req, name, resource_class):
    return ok([name, resource_class])


@endpoint()
def make(req):
    return created(req.absolute_url("/things/x"))


@endpoint()
def refuse(_req):
    raise errors.ProviderNotFound(uuid="u")


TABLE = {
    "/": {"GET": root},
    "/things": {"GET": root, "DELETE": refuse, "POST": make},
    "/things/{name}": {"GET": show},
    "/things/{name}/of/{resource_class}": {"GET": show_both},
}


@pytest.fixture(scope="module")
def app():
    return web.application(TABLE)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/things/x", {"name": "x"}),
        ("/things/x.y-z:1", {"name": "x.y-z:1"}),
        ("/things/%E2%98%83", {"name": "\N{SNOWMAN}"}),
        ("/things/a%25b", {"name": "a%b"}),
        ("/things/a+b", {"name": "a+b"}),
        ("/things/a%0Ab", {"name": "a\nb"}),
        ("/things/{name}", {"name": "{name}"}),
        ("/things/x/of/VCPU", ["x", "VCPU"]),
    ],
)
def test_a_path_is_routed_with_its_decoded_values(app, path, names):
    answer = web.ask_inside(app, "GET", path)
    assert answer.status_int == 200
    assert answer.json == names


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "//",
        "/things/",
        "/Things",
        "/things/x/",
        "/things//of/y",
        "/things/a%2Fb",
        "/things%0A",
        "/things/x%0A",
        "/things/x%00",
        "/things/%88",
        "/things/x/of",
    ],
)
def test_an_unknown_path_is_not_found(app, path):
    answer = web.ask_inside(app, "GET", path)
    assert answer.status_int == 404
    assert answer.json["errors"][0]["detail"] == "The resource could not be found.\n\n   "


@pytest.mark.parametrize("path", ["", "/"])
def test_the_root_path_may_be_empty_or_a_slash(app, path):
    assert web.ask_inside(app, "GET", path).status_int == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "get", "HEAD"])
def test_a_405_reply_lists_the_allowed_methods_in_the_order_of_the_table(app, method):
    answer = web.ask_inside(app, method, "/things", version=mv.MINIMUM)
    assert answer.status_int == 405
    assert answer.headers["allow"] == "GET, DELETE, POST"


def test_a_response_to_head_has_no_body(app):
    for path in ("/things", "/nope"):
        answer = web.ask_inside(app, "HEAD", path)
        assert answer.body == b""
        assert answer.headers["content-length"] == "0"


@pytest.mark.parametrize("length", ["foo", "1.5", "-1", "+1", "1 1", "0x1", "\u0661", "1" * 5000])
@pytest.mark.parametrize("path", ["/things", "/nope"])
def test_an_invalid_content_length_is_refused_before_routing(app, path, length):
    answer = web.ask_inside(app, "PUT", path, {"content-length": length})
    assert answer.status_int == 400
    assert "content-length header must be an integer" in answer.json["errors"][0]["detail"]


@pytest.mark.parametrize("path", ["/things", "/nope"])
def test_a_body_without_a_content_type_is_refused_before_routing(app, path):
    answer = web.ask_inside(app, "PUT", path, {"content-type": ""}, b"x")
    assert answer.status_int == 400
    assert "content-type header required when content-length > 0" in answer.json["errors"][0]["detail"]


@pytest.fixture(scope="module")
def narrow():
    return web.application(TABLE, api__max_request_body_size=10, api__max_query_length=10)


@pytest.mark.parametrize(
    ("query", "body", "status", "sentence"),
    [
        ("x=34567890", b"1234567890", 404, ""),
        ("x=345678901", b"", 414, "The query string of the request exceeds 10 bytes ([api]max_query_length)."),
        ("", b"12345678901", 413, "The body of the request exceeds 10 bytes ([api]max_request_body_size)."),
        ("x=345678901", b"12345678901", 414, "The query"),
    ],
)
def test_an_oversized_query_or_body_is_refused_before_routing(narrow, query, body, status, sentence):
    answer = web.ask_inside(narrow, "PUT", f"/nope?{query}", {"content-type": "application/json"}, body)
    assert answer.status_int == status
    assert answer.content_type == "application/json"
    [error] = answer.json["errors"]
    assert error["status"] == status
    assert sentence in error["detail"]


class Endless:
    """A body of unlimited length; reading fails after ``ends`` bytes, as when the client disconnects."""

    def __init__(self, ends):
        self.ends, self.requested, self.largest = ends, 0, 0

    def read(self, size):
        self.requested += size
        self.largest = max(self.largest, size)
        if self.requested > self.ends:
            raise OSError
        return b"x" * size


@pytest.mark.parametrize(
    ("length", "ends", "requested"), [(10**6, 10**9, 10**6), (10**12, 10**12, 2**26), (10**6, 10**5, 2 * 2**16)]
)
def test_an_oversized_body_is_discarded_so_that_the_client_reads_the_response(narrow, length, ends, requested):
    """The body is read in small pieces, up to a limit."""
    body = Endless(ends)
    environ = {"wsgi.input": body, "CONTENT_LENGTH": str(length), "CONTENT_TYPE": "application/json"}
    request = webob.Request.blank("/things", method="POST", environ=environ | web.inner_environ())
    assert request.get_response(narrow).status_int == 413
    assert body.requested == requested
    assert body.largest <= 2**16


@pytest.mark.parametrize("length", ["", "0", "00"])
def test_a_request_without_a_body_needs_no_content_type(app, length):
    assert web.ask_inside(app, "GET", "/things", {"content-length": length}).status_int == 200


def test_a_failure_becomes_an_error_document(app):
    answer = web.ask_inside(app, "DELETE", "/things")
    assert answer.status_int == 404
    assert "No resource provider with uuid u found" in answer.json["errors"][0]["detail"]


def test_an_exception_other_than_a_failure_is_not_caught():
    def fail(_req):
        raise KeyError("x")

    app = web.application({"/": {"GET": endpoint()(fail)}})
    with pytest.raises(KeyError):
        web.ask_inside(app, "GET", "/")


def test_the_response_is_sent_with_its_headers(app):
    answer = web.ask_inside(app, "POST", "/things", version=mv.MINIMUM)
    assert answer.status == "201 Created"
    assert dict(answer.headers) == {
        "content-length": "0",
        "location": "http://localhost:80/things/x",
        "openstack-api-version": "placement 1.0",
        "vary": "openstack-api-version",
    }
    assert "last-modified" in web.ask_inside(app, "GET", "/things", version=mv.CACHE_HEADERS).headers
    assert "last-modified" not in web.ask_inside(app, "GET", "/things", version=mv.MINIMUM).headers


def test_concurrent_first_requests_are_all_routed():
    """Story 2005168: the application is initialised before its first request."""
    app = web.application(TABLE)
    start = threading.Barrier(8)
    statuses = []

    def first():
        start.wait()
        statuses.append(web.ask_inside(app, "GET", "/things/x/of/VCPU").status_int)

    threads = [threading.Thread(target=first) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 8


def test_a_path_value_with_its_own_pattern_may_contain_slashes():
    api = dataclasses.replace(web.routes.PLACEMENT, routes=TABLE, patterns={"name": r"[\s\S]+"})
    conf = web.configuration()
    app = Application(api, Service(conf, web.NO_DATABASE, Policy(conf, api.rules), None, (api,)))
    for path, name in {"/things/a/b": "a/b", "/things/a%0Ab/": "a\nb/", "/things//": "/"}.items():
        assert web.ask_inside(app, "GET", path).json == {"name": name}
    assert web.ask_inside(app, "GET", "/things").json == {}
    assert web.ask_inside(app, "GET", "/things/").status_int == 404
