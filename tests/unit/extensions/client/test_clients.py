"""What both clients do around the steps of an operation: with the transport of httpx replaced (docs: client)."""

from __future__ import annotations

import contextlib
import threading

import httpx
import pytest
from placement_client import Client

from tests import asynchronous
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


@pytest.fixture(params=["sync", "async"])
def connect(request):
    """Makes clients of both kinds, of a service."""
    kinds = {"sync": (Client, httpx.Client), "async": (asynchronous.blocking, httpx.AsyncClient)}
    kind, http = kinds[request.param]
    with contextlib.ExitStack() as stack:

        def make(service, url="http://placement", auth=None, patience=0, **options):
            transport = http(transport=httpx.MockTransport(service), **options)
            return stack.enter_context(kind(url, auth, patience=patience, http=transport))

        yield make


def test_a_failure_of_the_end_hides_no_exception_of_the_block(connect, caplog):
    def closed(_):
        raise RuntimeError("The client is closed.")

    client = connect(Service(DELETE=closed))
    with pytest.raises(ZeroDivisionError), client.lease("a", "resources=VCPU:1", **OWNER, expires_in=3600):
        raise ZeroDivisionError
    assert "a is not released" in caplog.text
    assert "The client is closed." in caplog.text


def test_what_is_held_is_given_back_where_no_thread_can_begin(monkeypatch):
    def start(_):
        raise RuntimeError("can't start new thread")

    with httpx.Client(transport=httpx.MockTransport(service := Service())) as http:
        client = Client("http://placement", http=http)
        monkeypatch.setattr(threading.Thread, "start", start)
        with (
            pytest.raises(RuntimeError, match="thread"),
            client.lease("a", "resources=VCPU:1", **OWNER, expires_in=3600),
        ):
            pytest.fail("the block was entered")
    assert service.methods == ["POST", "DELETE"]
