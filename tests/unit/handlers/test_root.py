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
    "headers", [{}, {"x-auth-token": "admin"}, {"x-auth-token": "nobody"}, {"accept": "image/png"}]
)
@pytest.mark.parametrize("query", ["", "?limit=%88"])
def test_everybody_may_see_the_versions(app, headers, query):
    answer = web.ask(app, "GET", f"/{query}", headers)
    assert answer.status_int == 200
    assert answer.json == DOCUMENT
    assert answer.headers["content-type"] == "application/json"


def test_it_is_as_new_as_the_request_from_1_15_on():
    app = web.application({"/": {"GET": root.show}})
    assert "last-modified" in web.ask_inside(app, "GET", "/", version=mv.CACHE_HEADERS).headers
    assert "last-modified" not in web.ask_inside(app, "GET", "/", version=mv.NESTED).headers


def test_a_version_nobody_speaks_is_refused_here_too(app):
    answer = web.ask(app, "GET", "/", {"openstack-api-version": "placement 9.9"})
    assert answer.status_int == 406
