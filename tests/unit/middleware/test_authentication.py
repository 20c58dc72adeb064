"""Authentication with noauth2 (docs: api-authentication)."""

from __future__ import annotations

import pytest
from oslo_context import context
from webob import Request

from placement.http.endpoint import endpoint
from placement.http.environ import API, CONTEXT, GLOBAL_REQUEST_ID, REQUEST_ID
from placement.http.response import ok
from placement.middleware.authentication import Identity
from placement.routes import PLACEMENT
from tests import web


@endpoint()
def whoami(req):
    return ok(list(web.user(req)))


@endpoint()
def show_token(req):
    return ok([req.environ[CONTEXT].auth_token])


TABLE = {"/": {"GET": whoami}, "/whoami": {"GET": whoami}, "/token": {"GET": show_token}}


@pytest.fixture(scope="module")
def app():
    return web.service(TABLE)


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ({"x-auth-token": "admin"}, ["admin", "admin", ["admin"], None]),
        ({"x-auth-token": "admin:p"}, ["admin", "p", ["admin"], None]),
        ({"x-auth-token": "admin:"}, ["admin", "admin", ["admin"], None]),
        ({"x-auth-token": "Admin"}, ["Admin", "Admin", [], None]),
        ({"x-auth-token": "u:p"}, ["u", "p", [], None]),
        ({"x-auth-token": "u:p:q"}, ["u", "p:q", [], None]),
        ({"x-auth-token": ""}, ["", "", [], None]),
        ({"x-auth-token": "u", "x-roles": "reader, member"}, ["u", "u", ["reader", "member"], None]),
        ({"x-auth-token": "admin", "x-roles": "reader"}, ["admin", "admin", ["reader"], None]),
        ({"x-auth-token": "u:p", "x-project-id": "q"}, ["u", "q", [], None]),
        ({"x-auth-token": "u:p", "x-user-id": "other"}, ["u", "p", [], None]),
        ({"x-auth-token": "u:p", "openstack-system-scope": "all"}, ["u", None, [], "all"]),
        (
            {"x-auth-token": "u:p", "x-project-id": "q", "openstack-system-scope": "all"},
            ["u", None, [], "all"],
        ),
    ],
)
def test_the_user_is_derived_from_the_token_and_headers(app, headers, user):
    assert web.ask(app, "GET", "/whoami", headers).json == user


@pytest.mark.parametrize(
    ("accept", "content_type", "part"),
    [
        (None, "application/json", '"status": 401'),
        ("*/*", "application/json", '"title": "Unauthorized"'),
        ("text/html", "text/html; charset=UTF-8", "<h1>401 Unauthorized</h1>"),
    ],
)
@pytest.mark.parametrize("path", ["/whoami", "/nope", ""])
def test_a_request_without_a_token_is_answered_with_401(app, path, accept, content_type, part):
    answer = web.ask(app, "GET", path, {"accept": accept} if accept else {})
    assert answer.status_int == 401
    assert answer.headers["content-type"] == content_type
    assert part in answer.text
    assert "x-openstack-request-id" in answer.headers


def test_a_401_response_is_an_error_document(app):
    """Clients read the message in ``errors``, and from 1.23 on also the code."""
    for version, code in (("1.22", None), ("1.23", "placement.undefined_code"), ("9.9", None)):
        answer = web.ask(app, "GET", "/whoami", {"openstack-api-version": f"placement {version}"})
        [error] = answer.json["errors"]
        assert (error["status"], error["title"], error.get("code")) == (401, "Unauthorized", code)
        assert error["detail"].split("\n")[-1].strip() == "The request has no credentials, or they are not accepted."
        assert error["request_id"] == answer.headers["x-openstack-request-id"]
        assert "openstack-api-version" not in answer.headers


def test_the_root_needs_no_token(app):
    assert web.ask(app, "GET", "/").json == [None, None, [], None]


def test_the_context_does_not_contain_the_token(app):
    assert web.ask(app, "GET", "/token", {"x-auth-token": "admin"}).json == [None]


@pytest.mark.parametrize(
    "name", ["X-User-Id", "X-Project-Id", "X-Domain-Id", "X-User-Domain-Id", "X-Project-Domain-Id"]
)
@pytest.mark.parametrize("unprintable", ["a\tb", "a\x9b2Jb"])
def test_ids_that_cannot_be_printed_are_refused_and_not_in_the_log(name, unprintable):
    request = Request.blank("/traits", headers={"X-User-Id": "u", name: unprintable})
    request.environ |= {REQUEST_ID: "req-1", GLOBAL_REQUEST_ID: None, API: PLACEMENT}
    assert request.get_response(Identity(None)).status_code == 401
    logging_values = context.get_current().get_logging_values()
    assert logging_values["request_id"] == "req-1"
    assert not [value for value in logging_values.values() if unprintable in str(value)]
