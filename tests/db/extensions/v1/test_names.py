"""Lookup of providers by any name that Placement accepts, in paths and parameters (docs: v1-names)."""

from __future__ import annotations

import json
import urllib.parse

import pytest
import webob

from placement import deploy
from tests import web
from tests.nonsense.odd_values import TRAPS

HEADERS = {
    "X-Auth-Token": "admin",
    "X-Roles": "admin",
    "Content-Type": "application/json",
    "OpenStack-API-Version": "placement 1.39",
}
NAMES = dict.fromkeys((*TRAPS, "rack 1/host", "//", "a/", 'é?#&=\n"ß', "a%2Fb", ".", "overview"))


@pytest.fixture
def send(database):
    app = deploy.loadapp(web.configuration(placement_database__connection=str(database.engine.url)), database)

    def send(path, body=None):
        content = None if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        return webob.Request.blank(path, method=method, headers=HEADERS, body=content).get_response(app)

    return send


def test_a_provider_is_found_by_its_name(send):
    """A name in a path cannot be empty, and a line break at the end of a path is not part of the name."""
    providers_by_name = 0
    for name in NAMES:
        created = send("/resource_providers", {"name": name})
        if created.status_int != 200:
            continue
        quoted = urllib.parse.quote(name, safe="")
        reply = send(f"/v1/providers/{quoted}")
        if not name or name.endswith("\n"):
            assert reply.status_int == 404
        else:
            assert (reply.status_int, reply.json["provider"]["name"]) == (200, name)
            providers_by_name += 1
        if name:
            parameter = send(f"/v1/overview?root={quoted}")
            assert [provider["name"] for provider in parameter.json["providers"]] == [name]
            assert send(f"/v1/consumers?provider={quoted}").json == {"consumers": [], "next": None}
    assert providers_by_name > 30


def test_a_uuid_takes_precedence_over_a_name(send):
    first = send("/resource_providers", {"name": "one"}).json["uuid"]
    other = send("/resource_providers", {"name": first}).json["uuid"]
    assert send(f"/v1/providers/{first}").json["provider"]["name"] == "one"
    assert send(f"/v1/providers/{other}").json["provider"]["uuid"] == other
    assert [provider["name"] for provider in send(f"/v1/overview?root={first}").json["providers"]] == ["one"]


@pytest.mark.parametrize("name", ["ONE", "one ", " one", "0ne", "o%6Ee"])
def test_a_name_is_compared_exactly(send, name):
    send("/resource_providers", {"name": "one"})
    assert send(f"/v1/providers/{urllib.parse.quote(name)}").status_int == 404
    assert send(f"/v1/consumers?provider={urllib.parse.quote(name)}").status_int == 400
