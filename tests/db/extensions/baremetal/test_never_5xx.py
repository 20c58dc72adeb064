"""No request to the Bare Metal API gets a 5xx or SQL, and every error has the form that clients read.

Refused requests and reads change nothing.
"""

from __future__ import annotations

import json

import hypothesis
import pytest

from tests import servers
from tests.db.test_never_5xx import SQL, Target, send_and_check
from tests.nonsense.extensions import bare_metal
from tests.nonsense.extensions.bare_metal import ALLOCATIONS, CLASS, MONSTERS, NODES, ROUTES, TRAITS, headers
from tests.nonsense.odd_values import Sent, traps_for
from tests.strategies import scale


def furnish(call):
    """Create a node with an allocation, a free node, a node put into use by hand, and an allocation in error."""

    def does(method, path, body=None):
        answer = call(method, f"/baremetal/v1{path}", None, body)
        assert answer.status < 300, answer

    for uuid, name in zip(NODES, bare_metal.NODE_NAMES, strict=True):
        body = {"uuid": uuid, "name": name, "driver": "fake-hardware", "resource_class": CLASS, "extra": {"a": 1}}
        does("POST", "/nodes", body)
        does("PUT", f"/nodes/{name}/states/power", {"target": "power off"})
        does("PUT", f"/nodes/{name}/traits", {"traits": [*TRAITS]})
        for target in ("manage", "provide"):
            does("PUT", f"/nodes/{name}/states/provision", {"target": target})
    does("PUT", "/nodes/used/states/provision", {"target": "active"})
    active, failed = ALLOCATIONS
    does(
        "POST", "/allocations", {"uuid": active, "name": "active", "resource_class": CLASS, "candidate_nodes": ["held"]}
    )
    does("POST", "/allocations", {"uuid": failed, "name": "failed", "resource_class": "none"})


@pytest.fixture
def target(synced_database):
    service = Target(synced_database, furnish, baremetal__enabled=True)
    yield service
    service.close()


def assert_error(status, reported, content, request):
    """Check that the error is JSON in a string, with one of the two keys that clients read (docs: baremetal-errors)."""
    if request.method == "HEAD" or not request.path.startswith(b"/baremetal"):
        return
    reported = {name.lower(): value for name, value in reported.items()}
    assert reported["content-type"] == "application/json"
    inner = json.loads(json.loads(content)["error_message"])
    text = inner.get("faultstring", inner.get("description"))
    assert isinstance(text, str)
    assert inner.get("code", status) == status
    assert not SQL.search(text), text


@pytest.mark.every_database
def test_no_request_breaks_the_service(backend, target):
    @hypothesis.settings(max_examples=scale(200 if backend.kind == servers.SQLite.kind else 100))
    @hypothesis.given(bare_metal.sent())
    def anything(request):
        status, changed = send_and_check(target, request, check_error=assert_error)
        hypothesis.event(f"{request.method} {status}")
        if changed:
            target.close()

    anything()


def test_no_text_breaks_the_service_wherever_it_is_sent(backend, target):
    """A short run sends each place some of the texts, and each text to many places; a long run sends all."""
    step = 12 if backend.kind == servers.SQLite.kind else 24
    for number, place in enumerate(bare_metal.places()):
        for trap in traps_for(number, step):
            request = place.fill(trap)
            compare_tables = place.method != "GET"
            status, changed = send_and_check(
                target, request._replace(headers=headers(request.body)), compare_tables, assert_error
            )
            if changed and status < 300:
                target.close()


@pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
def test_no_body_breaks_a_route(target):
    for method, path, endpoint in ROUTES:
        if endpoint.body is not None:
            filled = bare_metal.PREFIX + path.format(node="free", allocation="active", trait=TRAITS[0])
            for monster in MONSTERS:
                send_and_check(
                    target, Sent(method, filled.encode(), b"", headers(monster), monster), check_error=assert_error
                )
