"""The OpenAPI documents over HTTP."""

from __future__ import annotations

import pytest

from placement.extensions.v1.api import V1
from placement.routes import PLACEMENT
from tests import web

PATHS = ["/v1/openapi.json", "/v1/openapi-placement.json", "/v1/openapi-placement.json?version=1.10"]


@pytest.fixture(scope="module")
def app():
    return web.mount(PLACEMENT, V1)


@pytest.mark.parametrize("path", PATHS)
def test_a_client_with_the_current_document_gets_304(app, path):
    first = web.ask(app, "GET", path)
    assert (first.status_int, first.content_type) == (200, "application/json")
    assert first.headers["Cache-Control"] == "no-cache", "clients revalidate with the ETag"
    second = web.ask(app, "GET", path, {"If-None-Match": first.headers["ETag"]})
    assert (second.status_int, second.body, second.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert web.ask(app, "GET", path, {"If-None-Match": '"other"'}).status_int == 200


def test_each_document_has_its_own_etag(app):
    assert len({web.ask(app, "GET", path).headers["ETag"] for path in PATHS}) == len(PATHS)


@pytest.mark.parametrize(
    ("mount_path", "path", "server"),
    [
        ("", "/v1/openapi.json", "/v1"),
        ("", "/v1/openapi-placement.json", "/"),
        ("/placement", "/v1/openapi.json", "/placement/v1"),
        ("/placement", "/v1/openapi-placement.json", "/placement"),
    ],
)
def test_the_server_url_is_the_mount_path_of_the_api(app, mount_path, path, server):
    answer = web.ask(app, "GET", path, environ={"SCRIPT_NAME": mount_path})
    assert answer.json["servers"] == [{"url": server}]


@pytest.mark.parametrize("query", ["version=1.40", "version=2", "version=", "version=LATEST", "v=1.1"])
def test_an_unknown_version_is_refused(app, query):
    assert web.ask(app, "GET", f"/v1/openapi-placement.json?{query}").status_int == 400
