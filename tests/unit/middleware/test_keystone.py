"""Keystone is not asked: requests that need no token, and configurations that prevent the start
(docs: api-authentication).
"""

from __future__ import annotations

import importlib.util
import sys

import pytest

from placement.errors import StartError
from placement.http.endpoint import endpoint
from placement.http.response import ok
from tests import web

REACHED = """\
[keystone_authtoken]
auth_type = password
auth_url = http://127.0.0.1:1/
username = u
password = p
www_authenticate_uri = http://identity.example/
"""


@endpoint()
def whoami(req):
    return ok(list(web.user(req)))


TABLE = {"/": {"GET": whoami}, "/whoami": {"GET": whoami}}


@pytest.fixture
def protected(tmp_path):
    """The service behind a Keystone that is configured like this."""

    def build(configured=REACHED):
        path = tmp_path / "placement.conf"
        path.write_text(configured)
        return web.service(TABLE, config_files=[str(path)], api__auth_strategy="keystone")

    return build


def test_all_but_the_version_document_needs_a_token(protected):
    app = protected()
    for path in ("/", ""):
        assert web.ask(app, "GET", path).status_int == 200
    answer = web.ask(app, "GET", "/whoami")
    assert answer.status_int == 401
    assert answer.headers["www-authenticate"] == 'Keystone uri="http://identity.example/"'
    [error] = answer.json["errors"]
    assert (error["status"], error["request_id"]) == (401, answer.headers["x-openstack-request-id"])


def test_no_identity_header_is_believed(protected):
    claimed = {"x-user-id": "u", "x-roles": "admin", "x-identity-status": "Confirmed"}
    assert web.ask(protected(), "GET", "/whoami", claimed).status_int == 401


def test_nobody_passes_even_where_the_decision_is_left_to_others(protected):
    app = protected(REACHED + "delay_auth_decision = true\n")
    assert web.ask(app, "GET", "/whoami").status_int == 401
    assert web.ask(app, "GET", "/whoami", {"x-user-id": "u", "x-roles": "admin"}).status_int == 401
    assert web.ask(app, "GET", "/").status_int == 200


@pytest.mark.parametrize(
    ("configured", "told"),
    [
        ("", r"\[keystone_authtoken\] must tell how to reach the Identity service: auth_type is missing"),
        ("[keystone_authtoken]\nauth_type = passwort\n", r"\[keystone_authtoken\]: .*passwort"),
        ("[keystone_authtoken]\nauth_type = password\n", r"\[keystone_authtoken\]: .*auth_url"),
        (REACHED + "memcache_security_strategy = ENCRYPT\n", r"\[keystone_authtoken\]: memcache_secret_key"),
    ],
)
def test_what_keeps_it_from_starting(protected, configured, told):
    with pytest.raises(StartError, match=told):
        protected(configured)


def test_without_its_package_it_says_what_is_missing(protected, monkeypatch):
    monkeypatch.delitem(sys.modules, "placement.middleware.keystone", raising=False)
    monkeypatch.setitem(sys.modules, "keystonemiddleware", None)
    with pytest.raises(StartError, match="keystonemiddleware is missing, the extra 'keystone'"):
        protected()


def test_without_the_client_of_memcached_it_says_so_before_the_first_request(protected, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "memcache" else found(name))
    with pytest.raises(StartError, match="python-memcached is missing, the extra 'keystone'"):
        protected(REACHED + "memcached_servers = 127.0.0.1:11211\n")
