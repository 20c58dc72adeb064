"""The test layer that compares responses with the OpenAPI documents detects each kind of difference."""

from __future__ import annotations

import dataclasses

import pytest

from placement import microversion as mv
from placement.extensions.v1.api import V1
from placement.http.endpoint import endpoint
from placement.http.response import NOW, UNDATED, created, found, no_content, ok
from placement.routes import PLACEMENT
from placement.schemas.declarations import Field, Object, integer
from placement.schemas.success import Dated, Success
from placement.version_history import OLDEST
from tests import reply_conformance, web
from tests.reply_conformance import Described, NotDescribed

COUNT = Success(200, Object(Field("count", integer(), required=True)))
DATED = dataclasses.replace(COUNT, dated=Dated.ALWAYS)
SOMETIMES = dataclasses.replace(COUNT, dated=Dated.SOMETIMES)
CREATED = Success(201, location=True)


ADMIN = {"X-Auth-Token": "admin"}


def serve(monkeypatch, reply, *replies, since=OLDEST, api=PLACEMENT):
    """Return an application with an endpoint that returns ``reply`` and declares ``replies``."""
    things = endpoint(replies=replies, since=since)(lambda _req: reply)
    api = dataclasses.replace(api, routes={"/things": {"GET": things}})
    monkeypatch.setattr(reply_conformance, "APIS", (api,))
    return Described(web.mount(*{mounted_api.prefix: mounted_api for mounted_api in (PLACEMENT, api)}.values()))


def answer_of(monkeypatch, reply, *replies, api=PLACEMENT, version=mv.LATEST):
    """Send a request to an endpoint that returns ``reply`` and declares ``replies``."""
    headers = ADMIN | {"OpenStack-API-Version": f"placement {version}"}
    return web.ask(serve(monkeypatch, reply, *replies, api=api), "GET", f"{api.prefix}/things", headers)


def ok_with(**headers):
    reply = ok({"count": 1})
    for name, value in headers.items():
        reply.headers[name.replace("_", "-")] = value
    return reply


@pytest.mark.parametrize(
    ("reply", "declared", "version"),
    [
        (lambda: ok({"count": 1}), COUNT, mv.LATEST),
        (no_content, Success(204), mv.LATEST),
        (lambda: created("http://placement/things/1"), CREATED, mv.LATEST),
        (lambda: found("http://placement/console/"), Success(302, location=True), mv.LATEST),
        (lambda: ok({"count": 1}, NOW), DATED, mv.LATEST),
        (lambda: ok({"count": 1}, NOW), DATED, mv.CANDIDATES_LIMIT),
        (lambda: ok({"count": 1}, NOW), COUNT, mv.NESTED),
        (lambda: ok({"count": 1}, NOW), DATED, mv.NESTED),
        (lambda: ok({"count": 1}, UNDATED), SOMETIMES, mv.LATEST),
        (lambda: ok({"count": 1}, NOW), SOMETIMES, mv.LATEST),
    ],
)
def test_a_declared_response_passes(monkeypatch, reply, declared, version):
    assert answer_of(monkeypatch, reply(), declared, version=version).status_int == declared.status


@pytest.mark.parametrize(
    ("reply", "declared", "difference"),
    [
        (lambda: ok({"count": "1"}), COUNT, '"1" is not of type "integer" at .*count'),
        (lambda: ok({}), COUNT, '"count" is a required property'),
        (lambda: ok({"count": 1, "more": 2}), COUNT, "Additional properties are not allowed"),
        (no_content, COUNT, "the status is not described"),
        (lambda: ok({}), Success(200), "content of type 'application/json'"),
        (lambda: created("http://x/"), dataclasses.replace(CREATED, document=COUNT.document), "content of type ''"),
        (lambda: ok({"count": 1}), dataclasses.replace(COUNT, location=True), "no header location"),
        (lambda: ok({"count": 1}, location="http://x/"), COUNT, "header location is not described"),
        (lambda: ok_with(x_more="1"), COUNT, "header x-more is not described"),
        (
            lambda: ok_with(openstack_api_version="placement 1.1"),
            COUNT,
            "header openstack-api-version: placement 1.1, ",
        ),
        (lambda: ok({"count": 1}, NOW), COUNT, "header cache-control is not described"),
        (lambda: ok({"count": 1}), DATED, "no header cache-control"),
        (lambda: ok({"count": 1}, UNDATED), DATED, "no header last-modified"),
    ],
)
def test_an_undeclared_response_is_a_difference(monkeypatch, reply, declared, difference):
    with pytest.raises(NotDescribed, match=f"GET /things at 1.39: .*{difference}"):
        answer_of(monkeypatch, reply(), declared)


def test_an_undeclared_field_is_a_difference_even_in_an_api_that_may_add_fields(monkeypatch):
    with pytest.raises(NotDescribed, match="Additional properties are not allowed"):
        answer_of(monkeypatch, ok({"count": 1, "more": 2}, NOW), DATED, api=V1)


def test_a_response_of_an_undocumented_operation_is_a_difference(monkeypatch):
    app = serve(monkeypatch, ok({"count": 1}), COUNT)
    monkeypatch.setattr(reply_conformance, "_operation", lambda _api, _version, _path, _method: None)
    with pytest.raises(NotDescribed, match=r"GET /things at 1\.0: .*the operation is not described"):
        web.ask(app, "GET", "/things", ADMIN)
    assert web.ask(app, "DELETE", "/things", ADMIN).status_int == 405


def test_compared_responses_are_counted(monkeypatch):
    app = serve(monkeypatch, ok({"count": 1}), COUNT, since=mv.TRAITS)
    statuses = []
    for path, version in (("/things", "1.6"), ("/things", "1.5"), ("/nothing", "1.6"), ("/things", "9.9")):
        headers = ADMIN | {"OpenStack-API-Version": f"placement {version}"}
        statuses.append(web.ask(app, "GET", path, headers).status_int)
    assert (statuses, app.compared) == ([200, 404, 404, 406], 1)
