"""The version document (docs: api-version-document)."""

from __future__ import annotations

import dataclasses

import pytest

from placement import microversion as mv
from placement import routes
from placement.handlers import root
from tests import web

DOCUMENT = {
    "versions": [
        {
            "id": "v1.0",
            "max_version": str(mv.LATEST),
            "min_version": "1.0",
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}
TABLE = {"/": {"GET": root.show}}


@pytest.fixture(scope="module")
def app():
    return web.service(TABLE)


@pytest.fixture(scope="module")
def app_with_pages():
    """Return the service with an API that has pages."""
    pages = dataclasses.replace(routes.PLACEMENT, prefix="/pages", routes={}, has_pages=True)
    return web.mount(dataclasses.replace(routes.PLACEMENT, routes=TABLE), pages)


@pytest.mark.parametrize(
    "headers", [{}, {"x-auth-token": "admin"}, {"x-auth-token": "unknown"}, {"accept": "image/png"}]
)
@pytest.mark.parametrize("query", ["", "?limit=%88"])
def test_the_version_document_needs_no_authentication(app, headers, query):
    answer = web.ask(app, "GET", f"/{query}", headers)
    assert answer.status_int == 200
    assert answer.json == DOCUMENT
    assert answer.headers["content-type"] == "application/json"


BROWSERS = [
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html",
    "text/html, application/json;q=0.9",
]
OTHER_CLIENTS = [
    None,
    "*/*",
    "application/json",
    "application/json, text/html;q=0.9",
    "text/*;q=0.5, */*",
    "image/png",
    "x",
    "",
]


@pytest.mark.parametrize("accept", BROWSERS)
@pytest.mark.parametrize("mount", ["", "/below/this"])
def test_a_browser_is_redirected_to_the_pages(app_with_pages, accept, mount):
    answer = web.ask(app_with_pages, "GET", "/", {"accept": accept}, environ={"SCRIPT_NAME": mount})
    assert (answer.status_int, answer.body) == (302, b"")
    assert answer.headers["location"] == f"http://localhost:80{mount}/pages/"
    assert "accept" in answer.headers.getall("vary")


@pytest.mark.parametrize("accept", OTHER_CLIENTS)
def test_other_clients_are_not_redirected(app, app_with_pages, accept):
    headers = {} if accept is None else {"accept": accept}
    reply_with_pages, reply_without_pages = (
        web.ask(application, "GET", "/", headers) for application in (app_with_pages, app)
    )
    assert (
        (reply_with_pages.status_int, reply_with_pages.body)
        == (reply_without_pages.status_int, reply_without_pages.body)
        == (200, reply_with_pages.body)
    )
    assert sorted(reply_with_pages.headers) == sorted(reply_without_pages.headers)


@pytest.mark.parametrize("accept", BROWSERS)
def test_without_pages_a_browser_gets_the_document(app, accept):
    assert web.ask(app, "GET", "/", {"accept": accept}).json == DOCUMENT
