"""The version document (docs: api-version-document)."""

from __future__ import annotations

import pytest

from placement import microversion as mv
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


@pytest.fixture(scope="module")
def app():
    return web.service({"/": {"GET": root.show}})


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
def test_a_browser_is_redirected_to_the_console(accept, mount):
    app = web.service({"/": {"GET": root.show}}, console__enabled=True)
    answer = web.ask(app, "GET", "/", {"accept": accept}, environ={"SCRIPT_NAME": mount})
    assert (answer.status_int, answer.body) == (302, b"")
    assert answer.headers["location"] == f"http://localhost:80{mount}/console/"
    assert "accept" in answer.headers.getall("vary")


@pytest.mark.parametrize("accept", OTHERS)
def test_other_clients_are_not(accept):
    with_console = web.service({"/": {"GET": root.show}}, console__enabled=True)
    without = web.service({"/": {"GET": root.show}})
    headers = {} if accept is None else {"accept": accept}
    one, other = (web.ask(app, "GET", "/", headers) for app in (with_console, without))
    assert (one.status_int, one.body) == (other.status_int, other.body) == (200, one.body)
    assert sorted(one.headers) == sorted(other.headers)


@pytest.mark.parametrize("accept", BROWSERS)
def test_without_the_console_a_browser_gets_the_document(app, accept):
    assert web.ask(app, "GET", "/", {"accept": accept}).json == DOCUMENT
