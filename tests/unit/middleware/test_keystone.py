"""Authentication with Keystone (docs: api-authentication): requests without a token, and invalid configurations.

No Keystone is contacted.
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

CONFIGURATION = f"""\
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
def build_service(tmp_path):
    """Return a function that builds the service with a configuration of keystonemiddleware."""

    def build(configuration=CONFIGURATION):
        path = tmp_path / "placement.conf"
        path.write_text(configuration)
        return web.service(TABLE, config_files=[str(path)], api__auth_strategy="keystone")

    return build


def test_everything_except_the_version_document_needs_a_token(build_service):
    app = build_service()
    for path in ("/", ""):
        assert web.ask(app, "GET", path).status_int == 200
    answer = web.ask(app, "GET", "/whoami")
    assert answer.status_int == 401
    assert answer.headers["www-authenticate"] == 'Keystone uri="http://identity.example/"'
    [error] = answer.json["errors"]
    assert (error["status"], error["request_id"]) == (401, answer.headers["x-openstack-request-id"])


def test_identity_headers_of_clients_are_not_trusted(build_service):
    forged = {"x-user-id": "u", "x-roles": "admin", "x-identity-status": "Confirmed"}
    assert web.ask(build_service(), "GET", "/whoami", forged).status_int == 401


def test_delayed_auth_decisions_do_not_admit_unauthenticated_requests(build_service):
    app = build_service(CONFIGURATION + "delay_auth_decision = true\n")
    assert web.ask(app, "GET", "/whoami").status_int == 401
    assert web.ask(app, "GET", "/whoami", {"x-user-id": "u", "x-roles": "admin"}).status_int == 401
    assert web.ask(app, "GET", "/").status_int == 200


@pytest.mark.parametrize(
    ("configuration", "sentence"),
    [
        ("", r"\[keystone_authtoken\] does not specify how to reach the Identity service: set auth_type"),
        ("[keystone_authtoken]\nauth_type = passwort\n", r"\[keystone_authtoken\]: .*passwort"),
        ("[keystone_authtoken]\nauth_type = password\n", r"\[keystone_authtoken\]: .*auth_url"),
        (CONFIGURATION + "memcache_security_strategy = ENCRYPT\n", r"\[keystone_authtoken\]: memcache_secret_key"),
    ],
    ids=["empty", "unknown type", "no address", "no secret key"],
)
def test_an_invalid_keystone_configuration_prevents_the_start(build_service, configuration, sentence):
    with pytest.raises(StartError, match=sentence):
        build_service(configuration)


def test_a_missing_keystonemiddleware_is_reported_with_its_extra(build_service, monkeypatch):
    monkeypatch.delitem(sys.modules, "placement.middleware.keystone", raising=False)
    monkeypatch.setitem(sys.modules, "keystonemiddleware", None)
    sentence = f"keystonemiddleware is not installed: {package.install_command('keystone')}"
    with pytest.raises(StartError, match=re.escape(sentence)):
        build_service()


def test_a_missing_memcached_client_is_reported_at_start(build_service, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "memcache" else find_spec(name))
    sentence = f"python-memcached is missing: {package.install_command('keystone')}"
    with pytest.raises(StartError, match=re.escape(sentence)):
        build_service(CONFIGURATION + "memcached_servers = 127.0.0.1:11211\n")
