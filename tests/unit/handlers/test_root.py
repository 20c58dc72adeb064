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
            "max_version": "1.39",
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


def test_last_modified_is_sent_from_1_15_on():
    app = web.application({"/": {"GET": root.show}})
    assert "last-modified" in web.ask_inside(app, "GET", "/", version=mv.CACHE_HEADERS).headers
    assert "last-modified" not in web.ask_inside(app, "GET", "/", version=mv.NESTED).headers


def test_an_unsupported_version_is_refused_by_the_version_document_too(app):
    answer = web.ask(app, "GET", "/", {"openstack-api-version": "placement 9.9"})
    assert answer.status_int == 406
