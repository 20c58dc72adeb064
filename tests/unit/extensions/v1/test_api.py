"""Unknown parameters on every route of the v1 API."""

from __future__ import annotations

import json

import pytest

from placement.extensions.v1.api import TABLE, V1
from placement.routes import PLACEMENT
from tests import web

ROUTES = [(method, path) for path, methods in TABLE.items() for method in methods]
CONSUMER = "5d8a3c1e-6a0b-4a52-9d53-3f6a55f0c7a1"
REQUEST = {"consumer": CONSUMER, "consumer_type": "T", "project_id": "p", "user_id": "u", "query": "resources=VCPU:1"}
BODIES = {"/claims": {"requests": [REQUEST]}, "/claims/{consumer}/extend": {"expires_in": 60}}


@pytest.fixture(scope="module")
def app():
    return web.mount(PLACEMENT, V1)


@pytest.mark.parametrize("parameter", ["dryrun", "colour", "limit2"])
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_an_unknown_parameter_is_refused(app, method, path, parameter):
    route = path.format(consumer=CONSUMER, provider="host1", object="host1")
    body = json.dumps(BODIES[path]).encode() if method == "POST" else None
    headers = {"content-type": "application/json"} if body else {}
    answer = web.ask(app, method, f"/v1{route}?{parameter}=1", headers, body)
    assert answer.status_int == 400
    [error] = answer.json["errors"]
    assert error["code"] == "placement.v1.invalid_field"
    assert error["field"] == parameter
    assert error["detail"].startswith(f"{parameter} is unknown; ")
