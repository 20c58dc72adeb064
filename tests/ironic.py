"""Ironic as the service under the gabbits of the Bare Metal API."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.parse

PREFIX = re.compile(r"/baremetal(?=/)")
VERSION = {"X-OpenStack-Ironic-API-Version": "1.115"}
#: Seconds to wait; Ironic fails an allocation after three attempts, a second apart.
LONGEST_WAIT = 60


def without_prefix(text: str) -> str:
    """Return the text of a gabbit with Ironic's paths, which have no prefix."""
    return PREFIX.sub("", text).replace("GET: /baremetal\n", "GET: /\n")


def wait_for_the_effect(request) -> None:
    """Wait until the effect of a request is complete: Ironic responds first, and then works in the background."""
    path = urllib.parse.urlsplit(request.url).path
    method, status = request.test_data["method"], request.response["status"]
    if (method, status) == ("PUT", "202") and "/states/" in path:
        _wait(request, path.partition("/states/")[0], lambda node: not any(map(node.get, TRANSITION)))
    if (method, status) == ("POST", "201") and path.rstrip("/").endswith("/allocations"):
        location = urllib.parse.urlsplit(request.response["location"]).path
        _wait(request, location, lambda allocation: allocation["state"] != "allocating")


TRANSITION = ("target_provision_state", "target_power_state", "reservation")


def _wait(request, path, is_done):
    end = time.monotonic() + LONGEST_WAIT
    while not is_done(_show(request, path)):
        assert time.monotonic() < end, path
        time.sleep(0.05)


def _show(request, path):
    connection = http.client.HTTPConnection(request.host, request.port, timeout=30)
    try:
        connection.request("GET", path, headers=VERSION)
        return json.load(connection.getresponse())
    finally:
        connection.close()
