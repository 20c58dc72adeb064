"""Pages of other origins cannot write with the password stored by a browser (docs: api-authentication)."""

from __future__ import annotations

import base64
import dataclasses

import bcrypt
import pytest

from placement import routes
from placement.http.endpoint import endpoint
from placement.http.response import ok
from placement.middleware.authentication import is_own_origin
from tests import web

PASSWORD = {"authorization": "basic " + base64.b64encode(b"u:p").decode(), "host": "here:8778"}
FOREIGN = {"sec-fetch-site": "cross-site", "origin": "https://example.org"}


@endpoint()
def write(_req):
    return ok("written")


TABLE = {"/thing": dict.fromkeys(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"), write)}
APIS = [dataclasses.replace(routes.PLACEMENT, prefix=prefix, routes=TABLE) for prefix in ("", "/other")]


def serve(tmp_path, **options):
    file = tmp_path / "passwords"
    file.write_text(f"u:{bcrypt.hashpw(b'p', bcrypt.gensalt(4)).decode()}\n")
    options |= {"api__auth_strategy": "http_basic", "oslo_middleware__http_basic_auth_user_file": str(file)}
    return web.mount(*APIS, conf=web.configuration(**options))


@pytest.mark.parametrize("path", ["/thing", "/other/thing"])
def test_a_page_of_another_origin_may_read_and_not_write(tmp_path, path):
    app = serve(tmp_path)
    for headers in (FOREIGN, {"origin": "null"}, {"sec-fetch-site": "same-site"}):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = web.ask(app, method, path, PASSWORD | headers)
            assert answer.status_int == 403
            assert "A page of another origin sent this request." in answer.text
        assert web.ask(app, "GET", path, PASSWORD | headers).status_int == 200


@pytest.mark.parametrize("path", ["/thing", "/other/thing"])
@pytest.mark.parametrize("headers", [{}, {"origin": "http://here:8778"}, {"sec-fetch-site": "same-origin"}])
def test_a_client_other_than_a_browser_and_a_page_of_the_service_may_write(tmp_path, path, headers):
    assert web.ask(serve(tmp_path), "POST", path, PASSWORD | headers).status_int == 200


def test_the_origin_of_a_page_is_checked_before_the_password(tmp_path):
    wrong_password = PASSWORD | {"authorization": "Basic " + base64.b64encode(b"u:q").decode()}
    assert web.ask(serve(tmp_path), "POST", "/thing", wrong_password | FOREIGN).status_int == 403


@pytest.mark.parametrize(
    ("allowed_origin", "status"), [("https://example.org", 200), ("https://example.com", 403), ("*", 403)]
)
def test_only_a_page_of_a_listed_origin_may_write(tmp_path, allowed_origin, status):
    app = serve(tmp_path, cors__allowed_origin=[allowed_origin])
    assert web.ask(app, "POST", "/thing", PASSWORD | FOREIGN).status_int == status


def test_a_page_of_any_origin_may_send_a_token():
    """A browser never adds a token by itself."""
    app = web.mount(*APIS)
    for path in ("/thing", "/other/thing"):
        assert web.ask(app, "POST", path, {"x-auth-token": "admin", **FOREIGN}).status_int == 200


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({}, True),  # a client other than a browser
        ({"HTTP_SEC_FETCH_SITE": "same-origin"}, True),
        ({"HTTP_SEC_FETCH_SITE": "none"}, True),
        ({"HTTP_SEC_FETCH_SITE": "cross-site"}, False),
        ({"HTTP_SEC_FETCH_SITE": "same-site"}, False),
        ({"HTTP_SEC_FETCH_SITE": ""}, False),
        ({"HTTP_SEC_FETCH_SITE": "cross-site", "HTTP_ORIGIN": "http://here:8778"}, False),
        ({"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_ORIGIN": "null"}, True),
        ({"HTTP_ORIGIN": "http://here:8778"}, True),
        ({"HTTP_ORIGIN": "https://here:8778"}, True),  # a proxy ends TLS
        ({"HTTP_ORIGIN": "http://here"}, False),
        ({"HTTP_ORIGIN": "http://here:8778.example.org"}, False),
        ({"HTTP_ORIGIN": "http://elsewhere:8778"}, False),
        ({"HTTP_ORIGIN": "null"}, False),
        ({"HTTP_ORIGIN": ""}, False),
        ({"HTTP_ORIGIN": "http://[here:8778"}, False),
    ],
)
def test_pages_of_other_origins_are_recognized_by_the_headers_of_browsers(headers, is_own):
    assert is_own_origin({"HTTP_HOST": "here:8778", **headers}) is is_own


@pytest.mark.parametrize("origin", ["null", "file://", "http://here"])
def test_a_request_without_a_host_is_not_from_a_page_of_the_service(origin):
    assert not is_own_origin({"HTTP_ORIGIN": origin})
