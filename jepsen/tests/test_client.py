"""Operations that a client records without a response."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading

import pytest

from jepsen.client import Client, Recorder
from tests import children


@pytest.fixture
def call():
    """Return a function that sends a request to a port and returns the recorded operation."""

    def send(port):
        recorder = Recorder()
        client = Client(recorder, 0, [f"http://127.0.0.1:{port}"], threading.Event())
        operation = client.call("PUT", "/allocations/c", {})
        assert recorder.operations == [operation]
        return operation

    return send


def test_a_request_that_was_not_sent_has_no_effect(call):
    refused = call(children.free_port())
    assert refused.status == 0
    assert not refused.is_open


@contextlib.contextmanager
def answering(*replies):
    """Run a server that sends these responses, one per connection; yield its port."""
    with socket.create_server(("127.0.0.1", children.free_port())) as server:

        def answer():
            for reply in replies:
                connection, _ = server.accept()
                with connection, connection.makefile("rb") as request:
                    # Read the whole request: closing a connection with unread data resets it and loses the response.
                    request.readline()
                    request.read(int(http.client.parse_headers(request).get("Content-Length", 0)))
                    connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", b"HTTP/1.1 200 OK\r\n\r\nOK"])
def test_a_missing_or_invalid_response_leaves_the_outcome_open(call, reply):
    with answering(reply) as port:
        operation = call(port)
    assert operation.status == 0
    assert operation.is_open


@pytest.mark.parametrize(("status", "answered"), [(500, True), (502, False), (503, False)])
def test_an_error_without_json_is_recorded_as_text(call, status, answered):
    with answering(f"HTTP/1.1 {status} ...\r\n\r\nInternal Server Error".encode()) as port:
        failed = call(port)
    assert (failed.status, failed.reply) == (status, "Internal Server Error")
    assert failed.is_open
    assert failed.answered is answered


def test_a_read_is_repeated_until_it_is_answered():
    unavailable, success = b"HTTP/1.1 503 ...\r\n\r\n{}", b"HTTP/1.1 200 OK\r\n\r\n{}"
    recorder, ended = Recorder(), threading.Event()
    ended.set()
    with answering(unavailable, b"", success) as port:
        client = Client(recorder, 0, [f"http://127.0.0.1:{port}"], ended)
        assert client.read("/allocations/c", seconds=60).status == 200
    assert [operation.status for operation in recorder.operations] == [503, 0, 200]
    assert client.read("/allocations/c", seconds=0).status == 0  # the server is gone
