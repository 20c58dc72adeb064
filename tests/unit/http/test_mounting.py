"""Several APIs below shared layers: the settings of each API, and the shared ones."""

from __future__ import annotations

import base64
import dataclasses
import logging
import re

import bcrypt
import pytest

from placement import errors, routes, signals
from placement.http.api import Api
from placement.http.endpoint import endpoint
from placement.http.environ import ROUTE, VERSION
from placement.http.response import NOW, created, ok, page, stream
from placement.microversion import Version
from placement.schemas.declarations import Field, Object, integer
from placement.schemas.document import Body
from tests import web

ADMIN = {"x-auth-token": "admin"}
VERSION_HEADER = "X-Metal-Version"
OLDEST, NEWEST = Version(1, 1), Version(1, 9)


class MetalVersions:
    """Versioning with another header; every response, even a refusal, states the range of versions."""

    def negotiate(self, environ):
        requested = environ.get("HTTP_X_METAL_VERSION", str(OLDEST))
        major, _, minor = requested.partition(".")
        if not minor.isdigit():
            raise errors.MalformedVersion(version=requested)
        version = Version(int(major), int(minor))
        if not OLDEST <= version <= NEWEST:
            failure = errors.UnacceptableVersion(version=requested)
            failure.headers = self._range()
            raise failure
        return version

    def headers(self, version):
        return (*self._range(), ("x-metal-version", str(version)))

    def _range(self):
        return (("x-metal-oldest", str(OLDEST)), ("x-metal-newest", str(NEWEST)))


class Envelope:
    """Error documents as text that begins with the status."""

    def render(self, failure, status, environ):
        version = environ.get(VERSION, "-")
        return "text/x-error", f"{status.value} {version} {failure.sentence}".encode()


@endpoint(negotiates=False)
def front(_req):
    return page(b"<p>metal", "text/html; charset=UTF-8")


@endpoint()
def user(req):
    return ok(list(web.user(req)))


@endpoint()
def create(req):
    return created(req.absolute_url("/things/1"), {"self": f"{req.mount_path}/things/1"})


@endpoint(body=Body(Object(Field("a", integer()))))
def echo(req):
    return ok(req.document)


@endpoint(since=Version(1, 5))
def newer(req):
    return ok(str(req.version))


@endpoint(negotiates=False)
def count(_req):
    return stream((b"%d\n" % number for number in range(3)), "text/plain")


@endpoint()
def fail_internally(_req):
    raise KeyError("secret")


@endpoint()
def conflict(_req):
    raise errors.ProviderGenerationConflict()


def mark_responses(application, _service):
    """Return a layer that belongs to a single API."""

    def layer(environ, start_response):
        def start(status, headers, *exc_info):
            return start_response(status, [*headers, ("x-metal-layer", "yes")], *exc_info)

        return application(environ, start)

    return layer


METAL = Api(
    name="metal",
    prefix="/metal",
    routes={
        "/": {"GET": front},
        "/user": {"GET": user},
        "/things": {"POST": create},
        "/written": {"PUT": echo},
        "/newer": {"GET": newer},
        "/streamed": {"GET": count},
        "/broken": {"GET": fail_internally},
        "/conflict": {"GET": conflict},
    },
    versioning=MetalVersions(),
    error_documents=Envelope(),
    layers=(mark_responses,),
    anonymous_is_admin=True,
)
PLACEMENT = dataclasses.replace(routes.PLACEMENT, routes={"/": {"GET": user}, "/user": {"GET": user}})


@pytest.fixture(scope="module")
def app():
    return web.mount(PLACEMENT, METAL)


@pytest.mark.parametrize("path", ["/metal", "/metal/"])
@pytest.mark.parametrize("mount", ["", "/below/this"])
def test_an_api_serves_its_prefix_with_and_without_a_slash(app, path, mount):
    answer = web.ask(app, "GET", path, environ={"SCRIPT_NAME": mount})
    assert (answer.status_int, answer.text) == (200, "<p>metal")
    assert answer.headers["content-type"] == "text/html; charset=UTF-8"


@pytest.mark.parametrize("path", ["/metallic", "/metallic/user", "/nope", "/Metal", "//metal", "/nope/metal"])
def test_a_path_below_no_prefix_is_served_by_the_root_api(app, path):
    answer = web.ask(app, "GET", path, ADMIN)
    assert answer.status_int == 404
    assert answer.json["errors"][0]["title"] == "Not Found"
    assert answer.headers["openstack-api-version"] == "placement 1.0"


def test_apis_may_have_the_same_path_below_their_prefixes(app):
    assert web.ask(app, "GET", "/user", ADMIN).headers["openstack-api-version"] == "placement 1.0"
    assert web.ask(app, "GET", "/metal/user", ADMIN).headers["x-metal-version"] == "1.1"
    assert web.ask(app, "GET", "/metal/metal/user", ADMIN).status_int == 404


@pytest.mark.parametrize("mount", ["", "/below/this"])
def test_links_and_locations_begin_where_the_api_is_mounted(app, mount):
    answer = web.ask(app, "POST", "/metal/things", environ={"SCRIPT_NAME": mount})
    assert answer.headers["location"] == f"http://localhost:80{mount}/metal/things/1"
    assert answer.json == {"self": f"{mount}/metal/things/1"}


def test_each_api_negotiates_its_versions(app):
    headers = {VERSION_HEADER: "1.5", "openstack-api-version": "placement 1.7"} | ADMIN
    answer = web.ask(app, "GET", "/metal/newer", headers)
    assert answer.json == "1.5"
    assert [answer.headers[f"x-metal-{name}"] for name in ("oldest", "newest", "version")] == ["1.1", "1.9", "1.5"]
    assert "openstack-api-version" not in answer.headers
    assert "vary" not in answer.headers
    answer = web.ask(app, "GET", "/user", headers)
    assert answer.headers["openstack-api-version"] == "placement 1.7"
    assert "x-metal-version" not in answer.headers
    assert web.ask(app, "GET", "/metal/newer", {VERSION_HEADER: "1.4"}).status_int == 404


def test_the_refusal_of_a_version_may_state_the_range_in_headers(app):
    answer = web.ask(app, "GET", "/metal/user", {VERSION_HEADER: "9.9"})
    assert (answer.status_int, answer.headers["content-type"]) == (406, "text/x-error")
    assert answer.headers["x-metal-newest"] == "1.9"
    assert "x-metal-version" not in answer.headers
    answer = web.ask(app, "GET", "/metal/user", {VERSION_HEADER: "abc"})
    assert answer.status_int == 400
    assert "x-metal-newest" not in answer.headers


@pytest.mark.parametrize(
    ("path", "headers", "environ", "text"),
    [
        ("/metal/nope", {}, {}, "404 1.1 "),
        ("/metal/conflict", {}, {}, "409 1.1 resource provider generation conflict"),
        ("/metal/broken", {}, {}, "500 1.1 The service encountered an unexpected error"),
        ("/metal/user", {"x-auth-token": "a\x01b"}, {}, "400 - The request line or a header"),
        (
            "/metal/user",
            {"x-auth-token": "a", "x-user-domain-id": "a\x85b"},
            {},
            "401 - The request has no credentials",
        ),
        ("/metal/user", {}, {"CONTENT_LENGTH": "x"}, "400 1.1 content-length header"),
    ],
)
def test_every_layer_reports_failures_in_the_form_of_the_api(app, path, headers, environ, text):
    answer = web.ask(app, "GET", path, headers, environ=environ)
    assert answer.headers["content-type"] == "text/x-error"
    assert answer.text.startswith(text)
    assert "secret" not in answer.text


def test_noauth2_accepts_requests_without_a_token_as_admin_if_the_api_allows_it(app):
    assert web.ask(app, "GET", "/metal/user").json == ["admin", "admin", ["admin"], None]
    assert web.ask(app, "GET", "/metal/user", {"x-auth-token": "u"}).json == ["u", "u", [], None]
    assert web.ask(app, "GET", "/user").status_int == 401


@pytest.mark.parametrize("path", ["/metal/user", "/pages/user"])
def test_noauth2_accepts_only_pages_of_the_api_itself_as_an_administrator(path):
    app = web.mount(PLACEMENT, METAL, dataclasses.replace(METAL, prefix="/pages", has_pages=True))
    own, other = ({"origin": f"http://{host}", "host": "here:8778"} for host in ("here:8778", "there:8778"))
    assert web.ask(app, "GET", path, other).status_int == 401
    assert web.ask(app, "GET", path, own).status_int == (200 if path == "/pages/user" else 401)
    assert web.ask(app, "GET", path, {"sec-fetch-site": "cross-site"}).status_int == 200  # a link to it


def test_each_api_has_its_own_open_paths():
    metal = dataclasses.replace(METAL, open_paths=frozenset({"/user"}), anonymous_is_admin=False)
    app = web.mount(PLACEMENT, metal)
    assert web.ask(app, "GET", "/metal/user").json == [None, None, [], None]
    assert web.ask(app, "GET", "/metal/user", {"x-user-id": "u", "x-roles": "admin"}).json == [None, None, [], None]
    assert web.ask(app, "GET", "/metal/").status_int == 401
    assert web.ask(app, "GET", "/user").status_int == 401
    assert web.ask(app, "GET", "/").status_int == 200


def test_all_apis_share_the_password_file(tmp_path):
    file = tmp_path / "passwords"
    file.write_text(f"u:{bcrypt.hashpw(b'p', bcrypt.gensalt(4)).decode()}\n")
    options = {"api__auth_strategy": "http_basic", "oslo_middleware__http_basic_auth_user_file": str(file)}
    app = web.mount(PLACEMENT, METAL, conf=web.configuration(**options))
    credentials = {"authorization": "Basic " + base64.b64encode(b"u:p").decode()}
    for path in ("/user", "/metal/user"):
        assert web.ask(app, "GET", path, credentials).json[0] == "u"
        assert web.ask(app, "GET", path).status_int == 401
    assert web.ask(app, "GET", "/metal").status_int == 200
    assert web.ask(app, "GET", "").status_int == 200


def test_layers_of_an_api_do_not_apply_to_other_apis(app):
    assert web.ask(app, "GET", "/metal/user").headers["x-metal-layer"] == "yes"
    assert "x-metal-layer" not in web.ask(app, "GET", "/user", ADMIN).headers


def test_the_log_names_the_whole_path_and_the_version_of_the_api(app, caplog):
    caplog.set_level(logging.INFO, "placement.middleware.request_log")
    answer = web.ask(app, "GET", "/metal/newer?x=y", {VERSION_HEADER: "1.5"}, environ={"SCRIPT_NAME": "/below"})
    [record] = caplog.records
    assert '"GET /below/metal/newer?x=y" status: 200' in record.getMessage()
    assert record.getMessage().endswith("microversion: 1.5")
    assert record.extra["route"] == "/metal/newer"
    assert answer.headers["x-openstack-request-id"].startswith("req-")


def test_the_answered_event_has_the_route_with_its_prefix(app):
    events = []

    def listener(environ, status, _seconds):
        events.append((environ.get(ROUTE), status))

    signals.answered.connect(listener)
    try:
        for path in ("/user", "/metal/user", "/metal", "/metal/conflict", "/metal/nope"):
            web.ask(app, "GET", path, ADMIN)
    finally:
        signals.answered.disconnect(listener)
    assert events == [
        ("/user", 200),
        ("/metal/user", 200),
        ("/metal/", 200),
        ("/metal/conflict", 409),
        (None, 404),
    ]


def test_a_stream_is_sent_without_a_length(app):
    answer = web.ask(app, "GET", "/metal/streamed")
    assert "content-length" not in answer.headers
    assert answer.headers["x-metal-version"] == "1.1"
    assert answer.text == "0\n1\n2\n"


@pytest.mark.parametrize("path", ["/user", "/metal/user", "/metal/conflict", "/nope", "/metal/streamed"])
def test_no_response_can_be_sniffed_as_another_type(app, path):
    assert web.ask(app, "GET", path, ADMIN).headers.getall("x-content-type-options") == ["nosniff"]


def test_the_healthcheck_belongs_to_the_root_api(app):
    assert web.ask(app, "GET", "/metal/healthcheck", ADMIN).status_int == 404


@pytest.mark.parametrize("prefix", ["metal", "/metal/", "/"])
def test_a_prefix_begins_and_does_not_end_with_a_slash(prefix):
    with pytest.raises(ValueError, match="must begin with a slash"):
        dataclasses.replace(METAL, prefix=prefix)


@pytest.mark.parametrize(("prefix", "first"), [("/metal", "metal"), ("", "placement")])
def test_two_apis_with_the_same_prefix_are_named_at_start(prefix, first):
    sentence = f'The APIs {first} and alloy have the same prefix, "{prefix}".'
    with pytest.raises(errors.StartError, match=f"^{re.escape(sentence)}$"):
        web.mount(PLACEMENT, METAL, dataclasses.replace(METAL, name="alloy", prefix=prefix))


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}, {"content-type": "application/json"}])
def test_an_api_may_accept_empty_bodies_and_any_content_type(headers):
    lenient = dataclasses.replace(METAL, strict_bodies=False)
    app = web.mount(PLACEMENT, lenient)
    for content, document in ((b'{"a": 1}', {"a": 1}), (b"", {})):
        answer = web.ask(app, "PUT", "/metal/written", headers, content)
        assert (answer.status_int, answer.json) == (200, document)
    assert web.ask(app, "PUT", "/metal/written", headers, b"{").status_int == 400


def test_other_apis_check_the_content_type_and_need_a_body(app):
    statuses = []
    for kind, content in ((None, b"{}"), ("text/plain", b"{}"), ("application/json", b""), ("application/json", b"{}")):
        headers = {"content-type": kind} if kind else {}
        statuses.append(web.ask(app, "PUT", "/metal/written", headers, content).status_int)
    assert statuses == [400, 415, 400, 200]


def test_the_longest_matching_prefix_is_used():
    inner = dataclasses.replace(METAL, prefix="/metal/inner", routes={"/": {"GET": newer}, "/newer": {"GET": newer}})
    app = web.mount(PLACEMENT, METAL, inner)
    assert web.ask(app, "GET", "/metal/inner/newer", {VERSION_HEADER: "1.6"}).json == "1.6"
    assert web.ask(app, "GET", "/metal/newer", {VERSION_HEADER: "1.7"}).json == "1.7"


@endpoint()
def show_dated(_req):
    return ok({}, NOW)


def test_each_api_sends_cache_headers_from_its_own_version_on():
    table = {"/": {"GET": show_dated}}
    app = web.mount(*(dataclasses.replace(api, routes=table) for api in (PLACEMENT, METAL)))
    assert "last-modified" in web.ask(app, "GET", "/metal").headers
    assert "last-modified" not in web.ask(app, "GET", "/", {"openstack-api-version": "placement 1.14"}).headers
    assert "last-modified" in web.ask(app, "GET", "/", {"openstack-api-version": "placement 1.15"}).headers
