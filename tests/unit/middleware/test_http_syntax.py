"""Requests that are malformed, or truncated by a web server (docs: api-order-of-checks)."""

from __future__ import annotations

import logging
import socket
import sys
from types import SimpleNamespace

import pytest

from placement.http.endpoint import endpoint
from placement.http.response import ok
from tests import web

ADMIN = {"HTTP_X_AUTH_TOKEN": "admin"}


@endpoint()
def show(req):
    return ok([req.absolute_url("/there"), web.user(req).user_id])


@pytest.fixture(scope="module")
def app():
    return web.service({"/": {"GET": show}, "/here": {"GET": show}})


@pytest.mark.parametrize(
    "environ",
    [
        {"QUERY_STRING": "name=a\nb"},
        {"QUERY_STRING": "name=\x1b[2J"},
        {"CONTENT_TYPE": "a\rb"},
        {"HTTP_HOST": "a\nSet-Cookie: e=1"},
        {"HTTP_ANYTHING": "\0"},
        {"HTTP_X_USER_ID": "\x7f"},
        {"REQUEST_METHOD": "GE\nT"},
        {"REQUEST_METHOD": "GÉT"},
        {"REQUEST_METHOD": ""},
        {"SERVER_PROTOCOL": "HTTP/1.1\nSet-Cookie: e=1"},
    ],
)
def test_control_characters_and_invalid_methods_are_refused(app, environ, caplog):
    caplog.set_level(logging.INFO)

    def server(base_environ, start_response):
        return app({**base_environ, **environ}, start_response)

    assert web.ask(server, "GET", "/here", environ=ADMIN).status_code == 400
    assert [record.getMessage().count("\n") for record in caplog.records] == [0]


def test_unusual_but_valid_requests_are_served(app):
    environ = {"QUERY_STRING": 'name=%0A%1B\xe9"', "HTTP_ANYTHING": "a\tb \xe9", "SERVER_PROTOCOL": "HTTP/2"}
    assert web.ask(app, "GET", "/here", environ=ADMIN | environ).status_code == 200


@pytest.mark.parametrize("cut", ["QUERY_STRING", "PATH_INFO", "SERVER_PROTOCOL"])
def test_a_request_truncated_by_the_server_is_refused_as_too_long(app, cut):
    def server(environ, start_response):
        """Remove a variable, as uWSGI does when its buffer is full."""
        del environ[cut]
        return app(environ, start_response)

    assert web.ask(server, "GET", "/here?name=a", environ=ADMIN).status_code == 414


def test_the_connection_is_closed_if_uwsgi_would_repeat_text_of_the_client(app, monkeypatch):
    server_end, client_end = socket.socketpair()
    with server_end, client_end:
        monkeypatch.setitem(sys.modules, "uwsgi", SimpleNamespace(connection_fd=server_end.fileno))
        web.ask(app, "GET", "/here", environ=ADMIN | {"QUERY_STRING": "\n"})
        client_end.setblocking(False)
        with pytest.raises(BlockingIOError):
            client_end.recv(1)
        web.ask(app, "GET", "/here", environ=ADMIN | {"SERVER_PROTOCOL": "HTTP/1.1\nSet-Cookie: e=1"})
        assert client_end.recv(1) == b""
        assert server_end.fileno() >= 0  # the descriptor stays reserved


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("placement.example.org", "placement.example.org"),
        ("192.0.2.1:8778", "192.0.2.1:8778"),
        ("[2001:db8::1]:8778", "[2001:db8::1]:8778"),
        ("my_host", "my_host"),
        ('a"><script>', "localhost:80"),
        ("a b", "localhost:80"),
        ("h\xf6st", "localhost:80"),
        ("a/b", "localhost:80"),
        ("a@b", "localhost:80"),
        ("a:b", "localhost:80"),
        ("a\t", "localhost:80"),
        ("", "localhost:80"),
    ],
)
def test_an_invalid_host_is_replaced_by_the_name_of_the_server(app, host, expected):
    answer = web.ask(app, "GET", "/here", environ=ADMIN | {"HTTP_HOST": host})
    assert answer.json[0] == f"http://{expected}/there"


def test_the_root_ignores_identity_headers(app):
    answer = web.ask(app, "GET", "/", environ={"HTTP_X_USER_ID": "mallory"})
    assert answer.json[1] is None


@pytest.mark.parametrize(
    "name",
    [
        *("HTTP_X_AUTH_TOKEN", "HTTP_X_PROJECT_ID", "HTTP_X_DOMAIN_ID", "HTTP_X_USER_DOMAIN_ID"),
        "HTTP_X_PROJECT_DOMAIN_ID",
    ],
)
def test_an_identity_with_control_characters_is_refused(app, name):
    assert web.ask(app, "GET", "/here", environ=ADMIN | {name: "\x9b2J"}).status_code == 401
