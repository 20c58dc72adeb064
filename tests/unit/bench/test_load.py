"""The load generator counts only complete responses, on persistent connections and on connections that are closed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from bench import load

EMPTY = b"HTTP/1.1 204 No Content\r\nserver: x\r\n\r\n"
SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}   "
REFUSED = b"HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n"


class ScriptedServer:
    """A server that sends scripted responses in order, and then repeats the last one."""

    def __init__(self, *answers: bytes, keeps_connections: bool) -> None:
        self._answers, self._keeps_connections = list(answers), keeps_connections
        self._lock = threading.Lock()
        self.requests: list[bytes] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/prefix/"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while request := connection.recv(65536):
                with self._lock:
                    self.requests.append(request)
                    answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                # Send two pieces, so that a client must handle partial reads.
                connection.sendall(answer[:20])
                connection.sendall(answer[20:])
                if not self._keeps_connections:
                    return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def scripted_server(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    answers, keeps_connections = request.param
    server = ScriptedServer(*answers, keeps_connections=keeps_connections)
    yield server
    server.close()


def some_requests(server: load.Server, count: int, answers: list[load.Answer]) -> load.Client:
    for number in range(count):
        answers.append((yield server.request("PUT", f"/things/{number}", {"ä": number})))


@pytest.mark.parametrize("scripted_server", [((SHORT,), True)], indirect=True)
def test_a_persistent_connection_is_reused(scripted_server: ScriptedServer) -> None:
    server = load.Server(scripted_server.url)
    before, answers = scripted_server.connections, []
    result = load.run(server, [some_requests(server, 5, answers)], seconds=60)
    assert server.keeps_connections
    assert scripted_server.connections - before == 1
    assert answers == [load.Answer(200, b"{}   ")] * 5
    assert (result.answers, result.successes, dict(result.statuses)) == (5, 5, {200: 5})


@pytest.mark.parametrize("scripted_server", [((SHORT, EMPTY, REFUSED, EMPTY), False)], indirect=True)
def test_a_server_that_closes_connections_gets_a_new_one_for_each_request(scripted_server: ScriptedServer) -> None:
    server = load.Server(scripted_server.url)
    before, answers = scripted_server.connections, []
    result = load.run(server, [some_requests(server, 3, answers), some_requests(server, 3, answers)], seconds=60)
    assert not server.keeps_connections
    assert scripted_server.connections - before == 6
    assert dict(result.statuses) == {204: 5, 409: 1}
    assert result.successes == 5
    assert len(result.latencies) == 6
    assert scripted_server.requests[-1].startswith(b"PUT /prefix/things/2 HTTP/1.1\r\n")
    assert scripted_server.requests[-1].endswith(b'\r\n\r\n{"\\u00e4": 2}')


@pytest.mark.parametrize(
    "scripted_server", [((SHORT, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{"), False)], indirect=True
)
def test_a_truncated_response_is_counted_as_lost(scripted_server: ScriptedServer) -> None:
    server = load.Server(scripted_server.url)
    result = load.run(server, [some_requests(server, 2, [])], seconds=60)
    assert (result.successes, dict(result.statuses)) == (0, {load.LOST: 2})


@pytest.mark.parametrize("scripted_server", [((b"HTTP/1.1 200 OK\r\nserver: x\r\n\r\nall",), False)], indirect=True)
def test_a_response_without_a_length_ends_with_its_connection(scripted_server: ScriptedServer) -> None:
    server = load.Server(scripted_server.url)
    answers: list[load.Answer] = []
    load.run(server, [some_requests(server, 1, answers)], seconds=60)
    assert answers == [load.Answer(200, b"all")]


@pytest.mark.parametrize("scripted_server", [((SHORT,), True)], indirect=True)
def test_no_request_begins_after_the_deadline(scripted_server: ScriptedServer) -> None:
    server = load.Server(scripted_server.url)
    result = load.run(server, [some_requests(server, 100, []), some_requests(server, 100, [])], seconds=0)
    assert result.answers == 2


@pytest.mark.parametrize("scripted_server", [((SHORT,), True), ((SHORT,), False)], indirect=True)
def test_other_clients_send_while_a_client_waits(scripted_server: ScriptedServer) -> None:
    server = load.Server(scripted_server.url)
    order: list[str] = []

    def waiting() -> load.Client:
        yield server.request("GET", "/")
        order.append("before")
        assert (yield 0.2) is None
        order.append("after")
        assert (yield server.request("GET", "/")) == load.Answer(200, b"{}   ")

    def busy() -> load.Client:
        while "after" not in order:
            yield server.request("GET", "/")
            order.append("other")

    result = load.run(server, [waiting(), busy()], seconds=60)
    start, end = order.index("before"), order.index("after")
    assert "other" in order[start:end]
    assert result.answers == 2 + order.count("other")


@pytest.mark.parametrize("scripted_server", [((SHORT,), True)], indirect=True)
def test_a_client_that_waits_at_the_deadline_ends(scripted_server: ScriptedServer) -> None:
    server = load.Server(scripted_server.url)

    def waiting() -> load.Client:
        yield server.request("GET", "/")
        yield 0.1
        yield server.request("GET", "/")

    assert load.run(server, [waiting()], seconds=0.05).answers == 1


@pytest.mark.parametrize("scripted_server", [((SHORT, REFUSED), False)], indirect=True)
def test_call_raises_for_an_error_response(scripted_server: ScriptedServer) -> None:
    server = load.Server(scripted_server.url)
    with pytest.raises(RuntimeError, match="returned 409"):
        server.call("POST", "/things", {})
