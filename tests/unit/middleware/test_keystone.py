"""Authentication with Keystone, without a Keystone: requests without a token, and invalid configurations
(docs: api-authentication).
"""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest

from placement import package
from placement.errors import StartError
from placement.http.endpoint import endpoint
from placement.http.response import ok
from tests import closed, web

REACHED = f"""\
[keystone_authtoken]
auth_type = password
auth_url = {closed.URL}/
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
    """Return a function that builds the service with a configuration of Keystone."""

    def build(configured=REACHED):
        path = tmp_path / "placement.conf"
        path.write_text(configured)
        return web.service(TABLE, config_files=[str(path)], api__auth_strategy="keystone")

    return build


def test_everything_except_the_version_document_needs_a_token(protected):
    app = protected()
    for path in ("/", ""):
        assert web.ask(app, "GET", path).status_int == 200
    answer = web.ask(app, "GET", "/whoami")
    assert answer.status_int == 401
    assert answer.headers["www-authenticate"] == 'Keystone uri="http://identity.example/"'
    [error] = answer.json["errors"]
    assert (error["status"], error["request_id"]) == (401, answer.headers["x-openstack-request-id"])


def test_identity_headers_of_clients_are_not_trusted(protected):
    claimed = {"x-user-id": "u", "x-roles": "admin", "x-identity-status": "Confirmed"}
    assert web.ask(protected(), "GET", "/whoami", claimed).status_int == 401


def test_delayed_auth_decisions_do_not_admit_unauthenticated_requests(protected):
    app = protected(REACHED + "delay_auth_decision = true\n")
    assert web.ask(app, "GET", "/whoami").status_int == 401
    assert web.ask(app, "GET", "/whoami", {"x-user-id": "u", "x-roles": "admin"}).status_int == 401
    assert web.ask(app, "GET", "/").status_int == 200


@pytest.mark.parametrize(
    ("configured", "sentence"),
    [
        ("", r"\[keystone_authtoken\] does not specify how to reach the Identity service: set auth_type"),
        ("[keystone_authtoken]\nauth_type = passwort\n", r"\[keystone_authtoken\]: .*passwort"),
        ("[keystone_authtoken]\nauth_type = password\n", r"\[keystone_authtoken\]: .*auth_url"),
        (REACHED + "memcache_security_strategy = ENCRYPT\n", r"\[keystone_authtoken\]: memcache_secret_key"),
    ],
    ids=["nothing", "an unknown type", "no address", "a secret key that is missing"],
)
def test_an_invalid_keystone_configuration_prevents_the_start(protected, configured, sentence):
    with pytest.raises(StartError, match=sentence):
        protected(configured)


def test_a_missing_keystonemiddleware_is_reported_with_its_extra(protected, monkeypatch):
    monkeypatch.delitem(sys.modules, "placement.middleware.keystone", raising=False)
    monkeypatch.setitem(sys.modules, "keystonemiddleware", None)
    sentence = f"keystonemiddleware is not installed: {package.install('keystone')}"
    with pytest.raises(StartError, match=re.escape(sentence)):
        protected()


def test_a_missing_memcached_client_is_reported_at_start(protected, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "memcache" else find_spec(name))
    sentence = f"python-memcached is missing: {package.install('keystone')}"
    with pytest.raises(StartError, match=re.escape(sentence)):
        protected(REACHED + "memcached_servers = 127.0.0.1:11211\n")
