"""Where only the address of a client authorises it, the Host of a request must be this machine."""

from __future__ import annotations

import pytest

from placement.middleware.allowed_hosts import allowed_hosts
from tests import web


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8778", "200 OK"),
        ("127.8.9.1", "200 OK"),
        ("[::1]:8778", "200 OK"),
        ("localhost", "200 OK"),
        ("LocalHost:8778", "200 OK"),
        ("mine:8778", "200 OK"),
        ("", "200 OK"),
        ("localhost.example.org", "403 Forbidden"),
        ("127.0.0.1.example.org:8778", "403 Forbidden"),
        ("192.0.2.1", "403 Forbidden"),
        ("[2001:db8::1]", "403 Forbidden"),
        ("0.0.0.0", "403 Forbidden"),
        ("a:b:127.0.0.1", "403 Forbidden"),
    ],
)
def test_only_hosts_of_this_machine_are_allowed(host, status):
    def application(_environ, start_response):
        start_response("200 OK", [])
        return [b""]

    app = allowed_hosts("Mine")(application, None)
    assert web.ask(app, "GET", "/", environ={"HTTP_HOST": host} | web.insider()).status == status
