"""The layer of tests that holds replies to the documents sees each kind of difference."""

from __future__ import annotations

import dataclasses

import pytest

from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.response import created, no_content, ok
from placement.routes import PLACEMENT
from placement.schemas.declarations import Field, Object, integer
from placement.schemas.success import Success
from tests import described, web
from tests.described import Described, NotDescribed

COUNT = Success(200, Object(Field("count", integer(), required=True)))

ADMIN = {"X-Auth-Token": "admin"}


def serve(monkeypatch, reply, *replies, since=mv.MINIMUM):
    """Return an application with an endpoint that returns ``reply`` and declares ``replies``."""
    things = endpoint(replies=replies, since=since)(lambda _req: reply)
    api = dataclasses.replace(PLACEMENT, routes={"/things": {"GET": things}})
    monkeypatch.setattr(described, "APIS", (api,))
    return Described(web.mounted(api))


def answer_of(monkeypatch, reply, *replies):
    """Send a request to such an endpoint."""
    return web.ask(serve(monkeypatch, reply, *replies), "GET", "/things", ADMIN)


@pytest.mark.parametrize(
    ("reply", "declared"),
    [
        (lambda: ok({"count": 1}), COUNT),
        (no_content, Success(204)),
        (lambda: created("http://placement/things/1"), Success(201, location=True)),
    ],
)
def test_a_reply_as_declared_passes(monkeypatch, reply, declared):
    assert answer_of(monkeypatch, reply(), declared).status_int == declared.status


@pytest.mark.parametrize(
    ("reply", "declared", "difference"),
    [
        (lambda: ok({"count": "1"}), COUNT, '"1" is not of type "integer" at .*count'),
        (lambda: ok({}), COUNT, '"count" is a required property'),
        (lambda: ok({"count": 1, "more": 2}), COUNT, "Additional properties are not allowed"),
        (no_content, COUNT, "the status is not described"),
        (lambda: ok({}), Success(200), "content of type 'application/json'"),
        (lambda: created("http://x/"), dataclasses.replace(COUNT, status=201), "content of type ''"),
        (lambda: ok({"count": 1}), dataclasses.replace(COUNT, location=True), "no header location"),
    ],
)
def test_another_reply_is_a_difference(monkeypatch, reply, declared, difference):
    with pytest.raises(NotDescribed, match=f"GET /things at 1.0: .*{difference}"):
        answer_of(monkeypatch, reply(), declared)


def test_a_reply_of_an_operation_that_the_document_lacks_is_a_difference(monkeypatch):
    app = serve(monkeypatch, ok({"count": 1}), COUNT)
    monkeypatch.setattr(described, "_document", lambda _api, _version: {"paths": {"/things": {}}})
    with pytest.raises(NotDescribed, match=r"GET /things at 1\.0: .*the operation is not described"):
        web.ask(app, "GET", "/things", ADMIN)
    assert web.ask(app, "DELETE", "/things", ADMIN).status_int == 405


def test_replies_are_counted_that_are_compared(monkeypatch):
    app = serve(monkeypatch, ok({"count": 1}), COUNT, since=mv.TRAITS)
    statuses = []
    for path, version in (("/things", "1.6"), ("/things", "1.5"), ("/nothing", "1.6"), ("/things", "9.9")):
        headers = ADMIN | {"OpenStack-API-Version": f"placement {version}"}
        statuses.append(web.ask(app, "GET", path, headers).status_int)
    assert (statuses, app.compared) == ([200, 404, 404, 406], 1)
