"""Both clients, with the transport of httpx replaced (docs: client)."""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.server
import logging
import threading

import httpx
import keystoneauth1.session
import pytest
from keystoneauth1 import exceptions
from keystoneauth1.identity import Password
from placement_client import Client, Keystone, NoReply, NoToken, Token, client, lease, operations

from tests import asynchronous, closed
from tests.children import PATIENCE
from tests.clock import Clock
from tests.unit.extensions.client.test_operations import JOB, OWNER, result


class Service:
    """A transport that responds like the service, or by ``replies``: functions of the request, by its method.

    Attributes:
        requests: The requests sent.
    """

    def __init__(self, **replies):
        self.requests = []
        self._replies = {"POST": claim_reply, "DELETE": release_reply, "GET": position_reply, **replies}

    def __call__(self, request):
        self.requests.append(request)
        return self._replies[request.method](request)

    @property
    def methods(self):
        return [request.method for request in self.requests]


def claim_reply(_):
    document = {**result(JOB, "claimed"), "expires_at": "2026-11-28T15:00:00Z"}
    return httpx.Response(200, json={"results": [document], **document})


def release_reply(_):
    return httpx.Response(200, json={"released": [JOB], "missing": [], "complete": True})


def position_reply(_):
    return httpx.Response(200, json={"position": "1"})


@pytest.fixture
def clock(monkeypatch):
    stopped = Clock(1000.0)
    for module in (client, lease, operations):
        monkeypatch.setattr(module, "time", stopped)
    return stopped


@pytest.fixture(params=["sync", "async"])
def connect(request):
    """Return a function that creates a client of either kind."""
    kinds = {"sync": (Client, httpx.Client), "async": (asynchronous.blocking, httpx.AsyncClient)}
    kind, http_type = kinds[request.param]
    with contextlib.ExitStack() as stack:

        def make(service, url="http://placement", auth=None, http_auth=None, **options):
            transport = http_type(transport=httpx.MockTransport(service), auth=http_auth)
            return stack.enter_context(kind(url, auth, http=transport, **options))

        yield make


def test_a_failed_release_hides_no_exception_of_the_block(connect, caplog):
    def fail(_):
        raise RuntimeError("The client is closed.")

    failing_client = connect(Service(DELETE=fail))
    with pytest.raises(ZeroDivisionError), failing_client.lease(JOB, "resources=VCPU:1", **OWNER, expires_in=3600):
        raise ZeroDivisionError
    assert f"{JOB} was not released" in caplog.text
    assert "The client is closed." in caplog.text


def test_a_claim_is_released_if_no_thread_can_be_started(monkeypatch):
    def start(_):
        raise RuntimeError("can't start new thread")

    with httpx.Client(transport=httpx.MockTransport(service := Service())) as http:
        client_without_threads = Client("http://placement", http=http)
        monkeypatch.setattr(threading.Thread, "start", start)
        with (
            pytest.raises(RuntimeError, match="thread"),
            client_without_threads.lease(JOB, "resources=VCPU:1", **OWNER, expires_in=3600),
        ):
            pytest.fail("the block was entered")
    assert service.methods == ["POST", "DELETE"]


def test_a_given_httpx_client_may_identify_the_caller(connect):
    connect(service := Service(), http_auth=("ada", "secret")).position()
    assert service.requests[0].headers["Authorization"] == "Basic YWRhOnNlY3JldA=="
    connect(service := Service(), auth=Token("t"), http_auth=("ada", "secret")).position()
    assert "Authorization" not in service.requests[0].headers


def test_a_password_in_the_url_is_in_no_exception_and_no_log(connect, caplog):
    def refuse(_):
        raise httpx.ConnectError("refused")

    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "httpx")  # gabbi disables this logger in the whole process
    url = "http://ada:s%2Fcret@placement/x/"
    with pytest.raises(NoReply, match=r"GET http://placement/x/v1/events\?after=now: refused") as raised:
        connect(Service(GET=refuse), url, patience=0).position()
    connect(service := Service(), url).position()
    assert service.requests[0].headers["Authorization"] == "Basic YWRhOnMvY3JldA=="
    assert "cret" not in str(raised.value) + caplog.text
    assert "http://placement/x" in caplog.text
    connect(service := Service(), url, Token("t")).position()
    assert "Authorization" not in service.requests[0].headers


def test_the_duration_of_a_lease_counts_from_before_its_request(connect, clock):
    def claim_slowly(request):
        clock.now += 9
        return claim_reply(request)

    with connect(Service(POST=claim_slowly)).lease(JOB, "resources=VCPU:1", **OWNER, expires_in=3600) as claimed_lease:
        assert claimed_lease.remaining == 3600 - 9

    def claim_again(request):
        clock.now += 4
        return httpx.Response(200, json={**claim_slowly(request).json(), "results": [result(JOB, "held")]})

    with connect(Service(POST=claim_again)).lease(JOB, "resources=VCPU:1", **OWNER, expires_in=3600) as claimed_lease:
        assert claimed_lease.remaining == 3600 - 13


@pytest.fixture
def lossy(clock):
    """Return a function that creates a transport that loses ``times`` responses, each after the longest wait."""

    def make(times, answer):
        remaining = [None] * times

        def respond(request):
            if not remaining:
                return answer(request)
            remaining.pop()
            clock.now += request.extensions["timeout"]["read"]
            raise httpx.ReadTimeout("lost")

        return respond

    return make


def test_a_request_whose_response_is_lost_is_repeated_twice_by_default(connect, lossy):
    assert connect(Service(POST=lossy(2, claim_reply))).claim(JOB, "resources=VCPU:1", **OWNER).outcome == "claimed"
    with pytest.raises(NoReply):
        connect(service := Service(POST=lossy(3, claim_reply))).claim(JOB, "resources=VCPU:1", **OWNER)
    assert service.methods == ["POST"] * 3


def test_a_release_whose_response_is_lost_is_repeated(connect, lossy, caplog):
    service = Service(DELETE=lossy(2, release_reply))
    with connect(service).lease(JOB, "resources=VCPU:1", **OWNER, expires_in=3600):
        pass
    assert service.methods == ["POST", *["DELETE"] * 3]
    assert "was not released" not in caplog.text


class GatheringServer(http.server.ThreadingHTTPServer):
    """A server that responds to no request until a given number has arrived."""

    request_queue_size = 256

    def __init__(self, number):
        super().__init__(("127.0.0.1", 0), PositionHandler)
        self.gathered = threading.Barrier(number)


class PositionHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.gathered.wait(PATIENCE)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"position": "1"}')

    def log_message(self, *_):
        """Print no log."""


@pytest.mark.parametrize("kind", [Client, asynchronous.blocking], ids=["sync", "async"])
def test_no_request_waits_for_the_connection_of_another(kind):
    """Many requests may wait for events, and an extension of a lease must be sent in time."""
    number = 101  # one more than the default of httpx
    with GatheringServer(number) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with (
            kind(f"http://127.0.0.1:{server.server_port}", patience=0, timeout=PATIENCE) as client,
            concurrent.futures.ThreadPoolExecutor(number) as pool,
        ):
            positions = [*pool.map(lambda _: client.position(), range(number))]
        server.shutdown()
    assert positions == ["1"] * number


class Session:
    """A keystoneauth session that raises the failures in turn before it succeeds."""

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
def test_an_unavailable_identity_service_is_retried(connect, url):
    session = Session(
        exceptions.ConnectFailure("refused"), exceptions.ServiceUnavailable(), exceptions.HttpError(http_status=429)
    )
    connect(service := Service(), url, Keystone(session), patience=PATIENCE).position()
    assert service.requests[0].headers["X-Auth-Token"] == "t"
    assert service.methods == ["GET"]


@pytest.mark.parametrize("url", ["http://placement", None])
@pytest.mark.parametrize(
    ("failure", "patience"),
    [
        (exceptions.Unauthorized("wrong"), PATIENCE),
        (exceptions.MissingAuthPlugin("wrong"), PATIENCE),
        (exceptions.EmptyCatalog("wrong"), PATIENCE),
        (exceptions.SSLError("wrong"), PATIENCE),
        (exceptions.DiscoveryFailure("wrong"), PATIENCE),
        (exceptions.ConnectFailure("wrong"), 0),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_permanent_failures_of_the_identity_service_are_not_retried(connect, url, failure, patience):
    session = Session(failure, RuntimeError("asked again"))
    with pytest.raises(NoToken, match="wrong"):
        connect(service := Service(), url, Keystone(session), patience=patience).position()
    assert service.methods == []
    assert len(session.failures) == 1


@pytest.mark.parametrize("url", ["http://placement", None])
def test_a_programming_error_is_not_reported_as_a_missing_token(connect, url):
    session = Session(TypeError("wrong"), RuntimeError("asked again"))
    with pytest.raises(TypeError, match="wrong"):
        connect(Service(), url, Keystone(session), patience=PATIENCE).position()


@pytest.mark.parametrize("path", ["", "/v3"])
def test_an_unreachable_identity_service_is_a_failure_that_may_pass(connect, path):
    """Without a version in its URL, keystoneauth reports that the versions could not be found."""
    password = Password(closed.URL + path, username="u", password="p", user_domain_id="default")
    with pytest.raises(NoToken) as raised:
        connect(Service(), auth=Keystone(keystoneauth1.session.Session(password)), patience=0).position()
    assert raised.value.may_pass
