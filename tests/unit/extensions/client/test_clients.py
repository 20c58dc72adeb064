"""What both clients do around the steps of an operation: with the transport of httpx replaced (docs: client)."""

from __future__ import annotations

import contextlib
import logging
import threading

import httpx
import pytest
from placement_client import Client, Keystone, NoReply, NoToken, Token, client, lease, operations

from tests import asynchronous
from tests.children import PATIENCE
from tests.clock import Clock
from tests.unit.extensions.client.test_operations import OWNER, result


class Service:
    """Answers as the service does, or as ``replies`` say, which are functions of the request by its method.

    Attributes:
        requests: What was sent.
    """

    def __init__(self, **replies):
        self.requests = []
        self._replies = {"POST": claimed, "DELETE": released, "GET": located, **replies}

    def __call__(self, request):
        self.requests.append(request)
        return self._replies[request.method](request)

    @property
    def methods(self):
        return [request.method for request in self.requests]


def claimed(_):
    document = {**result("a", "claimed"), "expires_at": "2026-11-28T15:00:00Z"}
    return httpx.Response(200, json={"results": [document], **document})


def released(_):
    return httpx.Response(200, json={"released": ["a"], "missing": [], "complete": True})


def located(_):
    return httpx.Response(200, json={"position": "1"})


@pytest.fixture
def clock(monkeypatch):
    stopped = Clock(1000.0)
    for module in (client, lease, operations):
        monkeypatch.setattr(module, "time", stopped)
    return stopped


@pytest.fixture(params=["sync", "async"])
def connect(request):
    """Makes clients of both kinds, of a service."""
    kinds = {"sync": (Client, httpx.Client), "async": (asynchronous.blocking, httpx.AsyncClient)}
    kind, http = kinds[request.param]
    with contextlib.ExitStack() as stack:

        def make(service, url="http://placement", auth=None, patience=0, http_auth=None):
            transport = http(transport=httpx.MockTransport(service), auth=http_auth)
            return stack.enter_context(kind(url, auth, patience=patience, http=transport))

        yield make


def test_a_failure_of_the_end_hides_no_exception_of_the_block(connect, caplog):
    def closed(_):
        raise RuntimeError("The client is closed.")

    broken = connect(Service(DELETE=closed))
    with pytest.raises(ZeroDivisionError), broken.lease("a", "resources=VCPU:1", **OWNER, expires_in=3600):
        raise ZeroDivisionError
    assert "a is not released" in caplog.text
    assert "The client is closed." in caplog.text


def test_what_is_held_is_given_back_where_no_thread_can_begin(monkeypatch):
    def start(_):
        raise RuntimeError("can't start new thread")

    with httpx.Client(transport=httpx.MockTransport(service := Service())) as http:
        alone = Client("http://placement", http=http)
        monkeypatch.setattr(threading.Thread, "start", start)
        with (
            pytest.raises(RuntimeError, match="thread"),
            alone.lease("a", "resources=VCPU:1", **OWNER, expires_in=3600),
        ):
            pytest.fail("the block was entered")
    assert service.methods == ["POST", "DELETE"]


def test_a_client_of_httpx_may_identify_the_caller(connect):
    connect(service := Service(), http_auth=("ada", "secret")).position()
    assert service.requests[0].headers["Authorization"] == "Basic YWRhOnNlY3JldA=="
    connect(service := Service(), auth=Token("t"), http_auth=("ada", "secret")).position()
    assert "Authorization" not in service.requests[0].headers


def test_a_password_of_the_url_is_in_no_exception_and_no_log(connect, caplog):
    def away(_):
        raise httpx.ConnectError("refused")

    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "httpx")  # gabbi silences it for the whole process
    url = "http://ada:s%2Fcret@placement/x/"
    with pytest.raises(NoReply, match=r"GET http://placement/x/v1/events\?after=now: refused") as raised:
        connect(Service(GET=away), url).position()
    connect(service := Service(), url).position()
    assert service.requests[0].headers["Authorization"] == "Basic YWRhOnMvY3JldA=="
    assert "cret" not in str(raised.value) + caplog.text
    assert "http://placement/x" in caplog.text
    connect(service := Service(), url, Token("t")).position()
    assert "Authorization" not in service.requests[0].headers


def test_a_lease_counts_from_before_a_request_was_sent(connect, clock):
    def slow(request):
        clock.now += 9
        return claimed(request)

    with connect(Service(POST=slow)).lease("a", "resources=VCPU:1", **OWNER, expires_in=3600) as held:
        assert held.remaining == 3600 - 9

    def held_before(request):
        clock.now += 4
        return httpx.Response(200, json={**slow(request).json(), "results": [result("a", "held")]})

    with connect(Service(POST=held_before)).lease("a", "resources=VCPU:1", **OWNER, expires_in=3600) as held:
        assert held.remaining == 3600 - 13


class Refusal(Exception):
    """What keystoneauth raises for a reply of the Identity service."""

    def __init__(self, http_status):
        super().__init__(f"HTTP {http_status}")
        self.http_status = http_status


class Session:
    """A session of keystoneauth that fails in these ways, one after the other, until it gives what it is asked for."""

    def __init__(self, *failures):
        self.failures = [*failures]

    def get_auth_headers(self, **_):
        if self.failures:
            raise self.failures.pop(0)
        return {"X-Auth-Token": "t"}

    def get_endpoint(self, **_):
        if self.failures:
            raise self.failures.pop(0)
        return "http://catalog"

    def invalidate(self):
        return True


@pytest.mark.parametrize("url", ["http://placement", None])
def test_an_identity_service_that_is_away_is_asked_again(connect, url):
    session = Session(ConnectionError("refused"), Refusal(503), Refusal(429))
    connect(service := Service(), url, Keystone(session), patience=PATIENCE).position()
    assert service.requests[0].headers["X-Auth-Token"] == "t"
    assert service.methods == ["GET"]


@pytest.mark.parametrize("url", ["http://placement", None])
@pytest.mark.parametrize(("failure", "patience"), [(Refusal(401), PATIENCE), (ConnectionError("refused"), 0)])
def test_a_token_that_will_not_come_is_not_asked_for(connect, url, failure, patience):
    session = Session(failure, RuntimeError("asked again"))
    with pytest.raises(NoToken, match=str(failure)):
        connect(service := Service(), url, Keystone(session), patience=patience).position()
    assert service.methods == []
    assert len(session.failures) == 1
