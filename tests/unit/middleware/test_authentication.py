"""Who a request is from (contract 1.14)."""

from __future__ import annotations

import sys

import pytest

from placement import conf as options
from placement.endpoint import endpoint
from placement.reply import ok
from tests import web


@endpoint()
def whoami(req):
    return ok(list(req.user))


TABLE = {"/": {"GET": whoami}, "/whoami": {"GET": whoami}}


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
def test_the_token_says_who(app, headers, user):
    assert web.ask(app, "GET", "/whoami", headers).json == user


@pytest.mark.parametrize(
    ("accept", "content_type", "part"),
    [
        (None, "application/json", '"code": "401 Unauthorized"'),
        ("*/*", "application/json", '"title": "Unauthorized"'),
        ("text/html", "text/html; charset=UTF-8", "<h1>401 Unauthorized</h1>"),
    ],
)
@pytest.mark.parametrize("path", ["/whoami", "/nope", ""])
def test_without_a_token_there_is_401(app, path, accept, content_type, part):
    answer = web.ask(app, "GET", path, {"accept": accept} if accept else {})
    assert answer.status_int == 401
    assert answer.headers["content-type"] == content_type
    assert part in answer.text
    assert "x-openstack-request-id" in answer.headers


def test_the_root_needs_no_token(app):
    assert web.ask(app, "GET", "/").json == [None, None, [], None]


# --- keystone ---

IDENTITY = """
[keystone_authtoken]
auth_type = password
auth_url = http://127.0.0.1:1/
username = u
password = p
www_authenticate_uri = http://identity.example/
"""


@pytest.fixture
def keystone(tmp_path):
    path = tmp_path / "placement.conf"
    path.write_text(IDENTITY)
    return web.service(TABLE, config_files=[str(path)], api__auth_strategy="keystone")


def test_keystone_protects_all_but_the_version_document(keystone):
    for path in ("/", ""):
        assert web.ask(keystone, "GET", path).status_int == 200
    answer = web.ask(keystone, "GET", "/whoami")
    assert answer.status_int == 401
    assert answer.headers["www-authenticate"] == 'Keystone uri="http://identity.example/"'


def test_keystone_believes_no_identity_header(keystone):
    answer = web.ask(
        keystone, "GET", "/whoami", {"x-user-id": "u", "x-roles": "admin", "x-identity-status": "Confirmed"}
    )
    assert answer.status_int == 401


def test_nobody_passes_even_where_keystone_lets_others_decide(tmp_path):
    path = tmp_path / "placement.conf"
    path.write_text(IDENTITY + "delay_auth_decision = true\n")
    app = web.service(TABLE, config_files=[str(path)], api__auth_strategy="keystone")
    assert web.ask(app, "GET", "/whoami").status_int == 401
    assert web.ask(app, "GET", "/whoami", {"x-user-id": "u", "x-roles": "admin"}).status_int == 401
    assert web.ask(app, "GET", "/").status_int == 200


def test_keystone_must_be_reachable(tmp_path):
    with pytest.raises(options.StartError, match=r"\[keystone_authtoken\] must tell"):
        web.service(TABLE, api__auth_strategy="keystone")


def test_keystone_without_its_package_is_told_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "keystonemiddleware", None)
    with pytest.raises(options.StartError, match="keystonemiddleware is missing, the extra 'keystone'"):
        web.service(TABLE, api__auth_strategy="keystone")
