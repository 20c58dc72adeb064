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
def with_pages():
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
OTHERS = [
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
def test_a_browser_is_redirected_to_the_pages(with_pages, accept, mount):
    answer = web.ask(with_pages, "GET", "/", {"accept": accept}, environ={"SCRIPT_NAME": mount})
    assert (answer.status_int, answer.body) == (302, b"")
    assert answer.headers["location"] == f"http://localhost:80{mount}/pages/"
    assert "accept" in answer.headers.getall("vary")


@pytest.mark.parametrize("accept", OTHERS)
def test_other_clients_are_not_redirected(app, with_pages, accept):
    headers = {} if accept is None else {"accept": accept}
    with_page, without_page = (web.ask(application, "GET", "/", headers) for application in (with_pages, app))
    assert (
        (with_page.status_int, with_page.body) == (without_page.status_int, without_page.body) == (200, with_page.body)
    )
    assert sorted(with_page.headers) == sorted(without_page.headers)


@pytest.mark.parametrize("accept", BROWSERS)
def test_without_pages_a_browser_gets_the_document(app, accept):
    assert web.ask(app, "GET", "/", {"accept": accept}).json == DOCUMENT
