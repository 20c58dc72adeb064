"""Names and passwords (contract 1.14 has the other strategies)."""

from __future__ import annotations

import base64

import bcrypt
import pytest

from placement import conf as options
from placement.endpoint import endpoint
from placement.reply import ok
from placement.request import CONTEXT
from tests import web

LONG = "\N{SNOWMAN}" * 24  # 72 bytes, the most that bcrypt takes


@endpoint()
def whoami(req):
    return ok(list(req.user))


@endpoint()
def asked_of_policy(req):
    """What the rules of a policy file may ask for."""
    return ok(dict(req.environ[CONTEXT].to_policy_values()))


TABLE = {"/": {"GET": whoami}, "/whoami": {"GET": whoami}, "/policy": {"GET": asked_of_policy}}


def entry(user, password):
    return f"{user}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()}\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "htpasswd"
    path.write_text(
        entry("nova", "right").replace("$2b$", "$2y$")  # as Apache's htpasswd writes it
        + entry("neutron", "a:b \N{SNOWMAN}")
        + entry("long", LONG)
        + "#"
        + entry("former", "right")
    )
    return path


def serve(file, **overrides):
    return web.service(
        TABLE, api__auth_strategy="http_basic", oslo_middleware__http_basic_auth_user_file=str(file), **overrides
    )


@pytest.fixture
def app(file):
    return serve(file)


def as_user(user, password):
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(("user", "password"), [("nova", "right"), ("neutron", "a:b \N{SNOWMAN}"), ("long", LONG)])
def test_who_knows_the_password_is_let_in(app, user, password):
    for _ in range(2):
        answer = web.ask(app, "GET", "/whoami", as_user(user, password))
        assert answer.json == [user, user, ["admin", "service"], None]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        as_user("nova", "wrong"),
        as_user("nova", ""),
        as_user("nov", "right"),
        as_user("nova:", "right"),
        as_user("", "right"),
        as_user("long", LONG + "x"),
        as_user("#former", "right"),
        as_user("former", "right"),
        {"authorization": "Basic"},
        {"authorization": "Basic !"},
        {"authorization": "Basic " + base64.b64encode(b"nova").decode()},
        {"authorization": "Basic " + base64.b64encode(b"\xff:right").decode()},
        {"authorization": "Bearer " + base64.b64encode(b"nova:right").decode()},
        {"x-auth-token": "admin", "x-user-id": "admin", "x-roles": "admin"},
    ],
)
def test_others_are_not(app, headers):
    web.ask(app, "GET", "/whoami", as_user("nova", "right"))
    answer = web.ask(app, "GET", "/whoami", headers)
    assert answer.status_int == 401
    assert answer.headers["www-authenticate"].startswith('Basic realm="placement"')
    assert "x-openstack-request-id" in answer.headers


def test_nobody_is_what_the_client_says(app):
    names = ("user-id", "user", "user-name", "project-id", "tenant-id", "tenant", "domain-id", "roles", "role")
    said = {f"x-{name}": "root" for name in names} | {"openstack-system-scope": "all", "x-service-roles": "root"}
    assert web.ask(app, "GET", "/whoami", said | as_user("nova", "right")).json == [
        *("nova", "nova", ["admin", "service"]),
        None,
    ]
    assert web.ask(app, "GET", "/", said).json == [None, None, [], None]
    people = ("user", "user-domain", "project", "project-domain", "domain", "tenant")
    said |= {f"x-{who}-{what}": "root" for who in people for what in ("id", "name")}
    said |= {f"x-service-{who}-id": "root" for who in people} | {"x-is-admin-project": "false"}
    known = web.ask(app, "GET", "/policy", as_user("nova", "right")).json
    assert web.ask(app, "GET", "/policy", said | as_user("nova", "right")).json == known


def test_the_roles_are_those_of_the_configuration(file):
    app = serve(file, api__http_basic_roles=["reader"])
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).json[2] == ["reader"]


def test_the_version_document_needs_nobody(app):
    for path in ("/", ""):
        assert web.ask(app, "GET", path).status_int == 200


def test_a_changed_file_is_in_force_at_once(app, file):
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 200
    file.write_text(entry("nova", "other"))
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 401
    assert web.ask(app, "GET", "/whoami", as_user("nova", "other")).status_int == 200
    file.unlink()
    assert web.ask(app, "GET", "/whoami", as_user("nova", "other")).status_int == 503
    file.mkdir()  # there, and cannot be read
    assert web.ask(app, "GET", "/whoami", as_user("nova", "other")).status_int == 503


def test_a_name_is_no_line_of_the_log(app, caplog):
    caplog.set_level("INFO")
    assert web.ask(app, "GET", "/whoami", as_user("nova\n2026-11-20 WARNING all is lost", "right")).status_int == 401
    assert "is lost" not in caplog.text


def test_a_password_is_checked_once_and_no_other_is_taken_for_it(app, monkeypatch):
    """A digest as it is usually made takes a good part of a second."""
    checked = []

    def check(password, digest):
        checked.append(password)
        return bcrypt.hashpw(password, digest) == digest

    monkeypatch.setattr("oslo_middleware.basic_auth.bcrypt.checkpw", check)
    for _ in range(3):
        assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 200
    assert checked == [b"right"]
    for _ in range(2):
        assert web.ask(app, "GET", "/whoami", as_user("nova", "wrong")).status_int == 401
    assert web.ask(app, "GET", "/whoami", as_user("novar", "ight")).status_int == 401
    assert checked == [b"right", b"wrong", b"wrong"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "htpasswd cannot be read"),
        (b"\xff:x\n", "htpasswd cannot be read"),
        (b"nova:{SHA}x\n", "htpasswd: Only bcrypt digested passwords are supported for nova"),
    ],
)
def test_a_file_that_cannot_be_used_keeps_it_from_starting(tmp_path, text, sentence):
    if text is not None:
        (tmp_path / "htpasswd").write_bytes(text)
    with pytest.raises(options.StartError, match=r"\[oslo_middleware\]http_basic_auth_user_file: .*" + sentence):
        serve(tmp_path / "htpasswd")
