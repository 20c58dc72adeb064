"""Authentication with HTTP Basic (docs: api-authentication)."""

from __future__ import annotations

import base64
import os
import time

import bcrypt
import pytest

from placement.errors import StartError
from placement.http.endpoint import endpoint
from placement.http.environ import CONTEXT
from placement.http.response import ok
from placement.middleware import guess_limit
from placement.middleware.guess_limit import address_of
from tests import web
from tests.clock import Clock

LONG = "\N{SNOWMAN}" * 24  # 72 bytes, the limit of bcrypt


@endpoint()
def whoami(req):
    return ok(list(web.user(req)))


@endpoint()
def policy_values(req):
    """Return the values of the context that policy rules can use."""
    return ok(dict(req.environ[CONTEXT].to_policy_values()))


@endpoint()
def names_in_environ(req):
    return ok(list(req.environ))


TABLE = {
    "/": {"GET": whoami},
    "/whoami": {"GET": whoami},
    "/policy": {"GET": policy_values},
    "/environ": {"GET": names_in_environ},
}


def entry(user, password):
    return f"{user}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()}\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "htpasswd"
    path.write_text(
        entry("nova", "right").replace("$2b$", "$2y$")  # a line written by Apache's htpasswd
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
def test_correct_passwords_are_accepted(app, user, password):
    for _ in range(2):
        answer = web.ask(app, "GET", "/whoami", as_user(user, password))
        assert answer.json == [user, user, ["admin", "service"], None]


def test_the_scheme_is_case_insensitive_and_the_header_is_removed(app):
    [identity] = as_user("nova", "right").values()
    for scheme in ("basic", "BASIC"):
        answer = web.ask(app, "GET", "/environ", {"authorization": identity.replace("Basic", scheme)})
        assert "HTTP_X_USER_ID" in answer.json
        assert "HTTP_AUTHORIZATION" not in answer.json


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
        {"authorization": "Basic !" + base64.b64encode(b"nova:right").decode()},
        {"authorization": "Basic " + base64.b64encode(b"nova").decode()},
        {"authorization": "Basic " + base64.b64encode(b"\xff:right").decode()},
        {"authorization": "Bearer " + base64.b64encode(b"nova:right").decode()},
        {"x-auth-token": "admin", "x-user-id": "admin", "x-roles": "admin"},
    ],
)
def test_wrong_or_malformed_credentials_are_refused(app, headers):
    web.ask(app, "GET", "/whoami", as_user("nova", "right"))
    answer = web.ask(app, "GET", "/whoami", headers)
    assert answer.status_int == 401
    assert answer.headers["www-authenticate"].startswith('Basic realm="placement"')
    assert answer.json["errors"][0]["title"] == "Unauthorized"
    assert "x-openstack-request-id" in answer.headers


def test_identity_headers_of_the_client_are_ignored(app):
    names = ("user-id", "user", "user-name", "project-id", "tenant-id", "tenant", "domain-id", "roles", "role")
    headers = {f"x-{name}": "root" for name in names} | {"openstack-system-scope": "all", "x-service-roles": "root"}
    assert web.ask(app, "GET", "/whoami", headers | as_user("nova", "right")).json == [
        *("nova", "nova", ["admin", "service"]),
        None,
    ]
    assert web.ask(app, "GET", "/", headers).json == [None, None, [], None]
    subjects = ("user", "user-domain", "project", "project-domain", "domain", "tenant")
    headers |= {f"x-{subject}-{field}": "root" for subject in subjects for field in ("id", "name")}
    headers |= {f"x-service-{subject}-id": "root" for subject in subjects} | {"x-is-admin-project": "false"}
    expected = web.ask(app, "GET", "/policy", as_user("nova", "right")).json
    assert web.ask(app, "GET", "/policy", headers | as_user("nova", "right")).json == expected


def test_the_roles_are_taken_from_the_configuration(file):
    app = serve(file, api__http_basic_roles=["reader"])
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).json[2] == ["reader"]


def test_the_version_document_needs_no_credentials(app):
    for path in ("/", ""):
        assert web.ask(app, "GET", path).status_int == 200


def test_a_changed_password_file_takes_effect_at_once(app, file):
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 200
    file.write_text(entry("nova", "other"))
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 401
    assert web.ask(app, "GET", "/whoami", as_user("nova", "other")).status_int == 200
    size = file.stat().st_size
    file.write_text(entry("nova", "third"))
    assert file.stat().st_size == size
    assert web.ask(app, "GET", "/whoami", as_user("nova", "other")).status_int == 401
    file.unlink()
    assert web.ask(app, "GET", "/whoami", as_user("nova", "other")).status_int == 503
    file.mkdir()  # exists, but cannot be read
    assert web.ask(app, "GET", "/whoami", as_user("nova", "other")).status_int == 503


def test_the_first_of_two_entries_of_a_name_is_used(app, file):
    """Apache does the same."""
    file.write_text(entry("nova", "first") + entry("nova", "second"))
    assert web.ask(app, "GET", "/whoami", as_user("nova", "second")).status_int == 401
    assert web.ask(app, "GET", "/whoami", as_user("nova", "first")).status_int == 200


def test_a_refused_name_is_not_logged(app, caplog):
    caplog.set_level("INFO")
    assert web.ask(app, "GET", "/whoami", as_user("nova\n2026-11-20 WARNING all is lost", "right")).status_int == 401
    assert "is lost" not in caplog.text


@pytest.fixture
def checked_costs(monkeypatch):
    """Return the list of the costs of checked digests; a cost of n takes 2**n units of time."""
    costs, check = [], bcrypt.checkpw

    def checkpw(password, digest):
        costs.append(int(digest[4:6]))
        return check(password, digest)

    monkeypatch.setattr(bcrypt, "checkpw", checkpw)
    return costs


def test_an_accepted_password_is_remembered_and_others_are_checked(app, file, checked_costs):
    """Checking a digest of the usual cost takes a large part of a second."""
    file.write_text(file.read_text() + entry("ironic", "right"))
    for _ in range(3):
        assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 200
    assert checked_costs == [4]
    for name, password in (("nova", "wrong"), ("nova", "wrong"), ("novar", "ight"), ("neutron", "right")):
        assert web.ask(app, "GET", "/whoami", as_user(name, password)).status_int == 401
    assert checked_costs == [4] * 5


def test_a_remembered_password_expires_after_its_last_use(app, checked_costs, monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr("placement.middleware.passwords.time.monotonic", lambda: now)
    for seconds, checks in ((0, 1), (250, 1), (250, 1), (350, 2), (1, 2)):
        now += seconds
        assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 200
        assert len(checked_costs) == checks


def test_a_wrong_password_costs_the_same_for_every_name(file, checked_costs):
    """Otherwise the time of a response would reveal which names exist."""
    digest = bcrypt.hashpw(b"right", bcrypt.gensalt(6)).decode()
    file.write_text(file.read_text() + f"ironic:{digest}\n")
    app = serve(file)
    work = []
    for name in ("ironic", "nova", "unknown", "#former", ""):
        checked_costs.clear()
        assert web.ask(app, "GET", "/whoami", as_user(name, "wrong")).status_int == 401
        work.append(sum(2**cost for cost in checked_costs))
    assert work == [2**6] * 5
    checked_costs.clear()
    for name in ("ironic", "unknown"):
        for password in ("x" * 73, "a\0b"):
            assert web.ask(app, "GET", "/whoami", as_user(name, password)).status_int == 401
    assert checked_costs == [], "passwords that bcrypt would truncate are not checked, for any name"


def test_guesses_are_limited_by_address_and_remembered_passwords_are_not(app, checked_costs, monkeypatch):
    monkeypatch.setattr(guess_limit, "time", Clock(1000.0))
    guesser, other = {"REMOTE_ADDR": "192.0.2.7"}, {"REMOTE_ADDR": "192.0.2.8"}
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right"), environ=guesser).status_int == 200
    answers = [web.ask(app, "GET", "/whoami", as_user("nova", str(guess)), environ=guesser) for guess in range(40)]
    assert [answer.status_int for answer in answers] == [401] * 10 + [429] * 30
    refusals = answers[10:]
    assert {answer.headers["retry-after"] for answer in refusals} == {"2"}
    assert len(checked_costs) == 11
    assert "Too many wrong passwords" in refusals[0].json["errors"][0]["detail"]
    # Even a correct password is not checked unless it is remembered.
    assert web.ask(app, "GET", "/whoami", as_user("neutron", "right"), environ=guesser).status_int == 429
    for address in (guesser, other):
        assert web.ask(app, "GET", "/whoami", as_user("nova", "right"), environ=address).status_int == 200
    assert web.ask(app, "GET", "/whoami", as_user("nova", "wrong"), environ=other).status_int == 401


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("192.0.2.7", "192.0.2.8", False),
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("198.51.100.1, 192.0.2.7", "198.51.100.2, 192.0.2.7", True),
        ("unix:", "unix:", True),
    ],
)
def test_addresses_of_one_network_or_proxy_share_a_limit(first, second, shared):
    assert (address_of({"REMOTE_ADDR": first}) == address_of({"REMOTE_ADDR": second})) is shared


def test_the_limit_expires_and_the_number_of_remembered_addresses_is_bounded(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(guess_limit.time, "monotonic", lambda: now)
    monkeypatch.setattr(guess_limit, "MAX_ADDRESSES", 3)
    limit = guess_limit.GuessLimit()
    for _ in range(12):
        limit.count("a")
    assert limit.seconds_to_wait("a") == 6, "two guesses too many"
    now += 5.5
    assert limit.seconds_to_wait("a") == 1, "half a second is left"
    now += 0.5
    assert limit.seconds_to_wait("a") == 0
    limit.count("a")
    assert limit.seconds_to_wait("a") == 2
    for address in "bcd":
        limit.count(address)
    assert limit.seconds_to_wait("a") == 0


def test_an_address_that_continues_to_guess_is_not_evicted(monkeypatch):
    monkeypatch.setattr(guess_limit.time, "monotonic", lambda: 1000.0)
    monkeypatch.setattr(guess_limit, "MAX_ADDRESSES", 2)
    limit = guess_limit.GuessLimit()
    for address in "a" * 10 + "bac":
        limit.count(address)
    assert limit.seconds_to_wait("a") == 4


def test_unused_attempts_are_not_saved_up(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(guess_limit.time, "monotonic", lambda: now)
    limit = guess_limit.GuessLimit()
    limit.count("a")
    now += 3600
    for _ in range(10):
        limit.count("a")
    assert limit.seconds_to_wait("a") == 2


@pytest.mark.parametrize("by_rename", [False, True], ids=["in place", "by rename"])
def test_a_changed_file_is_detected_although_its_times_are_the_same(app, file, by_rename):
    """Two changes within a tick of the clock have the same time, but another size or inode."""
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 200
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    text = file.read_text()
    if by_rename:
        other = file.with_name("other")
        other.write_text(text.replace("nova:", "none:"))
        other.replace(file)
    else:
        file.write_text(text.replace("nova:", "former-nova:"))
    os.utime(file, ns=times)
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 401


def test_an_invalid_entry_in_a_changed_file_affects_only_its_user(app, file):
    file.write_text(file.read_text() + "glance:{SHA}x\n")
    assert web.ask(app, "GET", "/whoami", as_user("glance", "x")).status_int == 401
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 200
    file.write_bytes(b"\xff")
    assert web.ask(app, "GET", "/whoami", as_user("nova", "right")).status_int == 503


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "htpasswd cannot be read: No such file"),
        (b"\xff:x\n", "htpasswd is not UTF-8"),
        (b"nova:{SHA}x\n", "htpasswd has no bcrypt digest for 'nova': htpasswd needs -B"),
        (b"nova:$2y$03$" + b"." * 53, "htpasswd has no bcrypt digest for 'nova'"),
        (b"nova:$2y$32$" + b"." * 53, "htpasswd has no bcrypt digest for 'nova'"),
        (b"nova:$2y$04$" + b"a" * 53, "htpasswd has no bcrypt digest for 'nova'"),
    ],
)
def test_an_unusable_password_file_prevents_the_start(tmp_path, text, sentence):
    if text is not None:
        (tmp_path / "htpasswd").write_bytes(text)
    with pytest.raises(StartError, match=r"\[oslo_middleware\]http_basic_auth_user_file: .*" + sentence):
        serve(tmp_path / "htpasswd")
