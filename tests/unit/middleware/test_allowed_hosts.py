"""Only requests to a Host of this machine are accepted, if a client is authorised by its address alone."""

from __future__ import annotations

import contextlib
import functools
import re

import pytest

from placement import deploy
from placement.http.failures import ForeignHost
from placement.middleware.allowed_hosts import allowed_hosts
from placement.middleware.mount import Mount
from tests import web


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8778", True),
        ("127.8.9.1", True),
        ("[::1]:8778", True),
        ("localhost", True),
        ("LocalHost:8778", True),
        ("mine:8778", True),
        ("", True),
        ("localhost.example.org", False),
        ("127.0.0.1.example.org:8778", False),
        ("192.0.2.1", False),
        ("[2001:db8::1]", False),
        ("0.0.0.0", False),
        ("a:b:127.0.0.1", False),
    ],
)
def test_only_hosts_of_this_machine_are_allowed(host, allowed):
    check = allowed_hosts("Mine")
    with (
        contextlib.nullcontext()
        if allowed
        else pytest.raises(ForeignHost, match=re.escape(f"The host {host} is not allowed"))
    ):
        check({"HTTP_HOST": host})


@pytest.mark.parametrize("path", ["/", "/nothing", "/healthcheck"])
def test_a_request_for_another_host_is_refused_before_any_other_check(path):
    layers = tuple(
        functools.partial(Mount, check_host=allowed_hosts("mine")) if layer is Mount else layer
        for layer in deploy.LAYERS
    )
    app = web.service({"/": {}}, layers=layers)
    answer = web.ask(app, "GET", path, {"host": "example.org", "x-auth-token": "admin"})
    assert (answer.status_int, "The host example.org is not allowed" in answer.text) == (403, True)
    assert "x-openstack-request-id" in answer.headers
