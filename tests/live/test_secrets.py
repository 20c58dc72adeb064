"""No secret is logged, at any level and in any encoding."""

from __future__ import annotations

import base64
import configparser
import json
import logging
import os
import secrets
import sys

import bcrypt
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from oslo_log import log

from placement import deploy
from placement.db.connect import connect
from tests import children, preloaded, web

#: A program that serves three requests with the given headers, and prints the statuses of the responses.
SERVE = """
import json, sys
from placement.wsgi.api import application
from tests import web
for method, path, body in [
    ("GET", "/resource_providers", None),
    ("GET", "/allocation_candidates?resources=VCPU:1", None),
    ("PUT", "/allocations/7c1f0a52-0b5e-4a0f-8f6b-2d3e4f5a6b7c", b"{}"),
]:
    print(web.ask(application, method, path, json.loads(sys.argv[1]), body).status_int)
"""


def secret(description):
    """Return a secret that can be found in a text, even in the encoding of HTTP Basic."""
    return f"{description}-{secrets.token_hex(12)}"


def serve(directory, options, headers):
    """Return the statuses of the responses, and the log."""
    # All loggers at DEBUG, except stevedore: oslo.log cannot write entry points as JSON.
    options.setdefault("DEFAULT", {}).update(debug=True, default_log_levels="stevedore=INFO", use_stderr=True)
    options["placement_database"].update(sync_on_startup=True, connection_debug=100)
    parser = configparser.RawConfigParser()
    parser.read_dict(options)
    with (directory / "placement.conf").open("w") as file:
        parser.write(file)
    headers |= {"OpenStack-API-Version": "placement 1.39", "Content-Type": "application/json"}
    done = preloaded.service().run(
        [sys.executable, "-c", SERVE, json.dumps(headers)], {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(directory)}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split(), done.stderr


def check_hidden(text, *values):
    """Fail if the text contains one of the secrets, plain or encoded for Basic authentication."""
    for value in values:
        assert value not in text
    for word in text.replace('"', " ").replace("'", " ").split():
        try:
            decoded = base64.b64decode(word, validate=True).decode()
        except ValueError:
            continue
        assert not any(value in decoded for value in values), word


def basic(user, password):
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.mark.parametrize("use_json", [True, False], ids=["json", "text"])
def test_tokens_and_passwords_are_not_logged_with_keystone(tmp_path, use_json):
    """The Identity service is unreachable, in which case the middleware logs most."""
    token, service_token, password, other = map(secret, ["token", "service", "password", "basic"])
    statuses, output = serve(
        tmp_path,
        {
            "DEFAULT": {"use_json": use_json},
            "api": {"auth_strategy": "keystone"},
            "placement_database": {"connection": f"sqlite:///{tmp_path}/db"},
            "keystone_authtoken": {
                "auth_type": "password",
                "auth_url": f"http://127.0.0.1:{children.free_port()}",
                "username": "placement",
                "password": password,
                "http_request_max_retries": 0,
            },
        },
        {"X-Auth-Token": token, "X-Service-Token": service_token, "Authorization": basic("user", other)},
    )
    assert statuses == ["503"] * 3
    assert "placement_database.connection " in output  # all options and all events are logged
    assert "Starting request" in output
    check_hidden(output, token, service_token, password, other)


@pytest.mark.parametrize("use_json", [True, False], ids=["json", "text"])
def test_passwords_are_not_logged_with_http_basic(tmp_path, use_json):
    password, wrong = secret("password"), secret("wrong")
    digest = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
    (tmp_path / "htpasswd").write_text(f"user:{digest}\n")
    for given_password, expected in [(password, ["200", "200", "400"]), (wrong, ["401"] * 3)]:
        statuses, output = serve(
            tmp_path,
            {
                "DEFAULT": {"use_json": use_json},
                "api": {"auth_strategy": "http_basic", "slow_request_threshold": 1e-9},
                "oslo_middleware": {"http_basic_auth_user_file": tmp_path / "htpasswd"},
                "placement_database": {"connection": f"sqlite:///{tmp_path}/db"},
            },
            {"Authorization": basic("user", given_password)},
        )
        assert statuses == expected
        assert "http_basic_auth_user_file" in output
        check_hidden(output, given_password, digest)
        if use_json and given_password == password:
            lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
            [claim] = [line for line in lines if line["extra"].get("method") == "PUT"]
            assert claim["context"]["user"] == "user"
            assert claim["extra"]["failure"] == "InvalidBody"
            assert claim["extra"]["parts"] == {}


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_the_password_of_the_database_is_not_logged(database_url, tmp_path, right):
    url = sa.make_url(database_url)
    if right:
        statuses, output = serve(
            tmp_path,
            {
                "DEFAULT": {"use_json": True},
                "api": {"auth_strategy": "noauth2"},
                "placement_database": {"connection": database_url},
            },
            {"X-Auth-Token": "admin"},
        )
        assert statuses == ["200", "200", "400"]
        assert "SELECT" in output
        check_hidden(output, url.password)
        return
    wrong = secret("wrong")
    connection = url.set(password=wrong).render_as_string(hide_password=False)
    conf = web.configuration(placement_database__connection=connection, placement_database__max_retries=0)
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each driver raises its own exception
        deploy.loadapp(conf)
    assert wrong not in str(raised.value)


def complaint(connection):
    """Return the error message about a URL, or "" if it is accepted."""
    try:
        connect(web.configuration(placement_database__connection=connection)).dispose()
    except sa.exc.ArgumentError as error:
        return str(error)
    return ""


@given(st.text("abc:@/?#[]% ", min_size=1, max_size=12))
def test_a_url_that_cannot_be_parsed_is_not_shown(text):
    """Such a URL usually contains a password with unescaped characters."""
    assert "zq7zq" not in complaint(f"mysql+pymysql://u:{text}zq7zq@h/d")
    assert "zq7zq" not in complaint(f"mysql+pymysql://u:x{text}zq7zq@h:3306/d")


@pytest.mark.parametrize("password", ["x@y:zq7zq", "x@zq7zq"])
def test_a_truncated_password_is_reported(password):
    assert "write @ as %40" in complaint(f"mysql+pymysql://u:{password}@h/d")


def test_a_secret_in_the_parameters_added_to_the_url_is_not_logged(caplog):
    logger = log.getLogger(__name__)
    conf = web.configuration(placement_database__connection_parameters="password=zq7zq")
    caplog.set_level(logging.DEBUG)
    conf.log_opt_values(logger, logging.DEBUG)
    assert "connection_parameters" in caplog.text
    assert "zq7zq" not in caplog.text
