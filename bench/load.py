"""A load generator for one server: several clients in one thread.

A client is a generator: it yields a request and is sent the response, on which its next request can depend.  Between
requests it can yield a number of seconds to wait, and is sent None.  One selector loop over plain sockets drives all
clients of a run, because on a small machine an expensive load generator would slow down the servers under test.  The
result includes its own processor time.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import errno
import json
import math
import selectors
import socket
import ssl
import time
import urllib.parse
from collections.abc import Generator, Iterable
from typing import Any, NamedTuple

TIMEOUT = 60  # seconds to wait for a response
LOST = 0  # the "status" of a request whose connection ended without a complete response


class Answer(NamedTuple):
    status: int
    body: bytes


Client = Generator[bytes | float, Answer | None, None]


class Server:
    """The address of a server, and the headers of requests to it."""

    def __init__(self, url: str, token: str = "admin", version: str = "placement 1.39") -> None:
        parts = urllib.parse.urlsplit(url)
        self.url = url
        self.tls = ssl.create_default_context() if parts.scheme == "https" else None
        self.host = parts.hostname or ""
        self.prefix = parts.path.rstrip("/")
        port = parts.port or (443 if self.tls else 80)
        self.family, _, _, _, address = socket.getaddrinfo(self.host, port, type=socket.SOCK_STREAM)[0]
        self.address: Any = address
        self._headers = (
            f"Host: {parts.netloc}\r\nX-Auth-Token: {token}\r\nX-Roles: admin,service\r\nAccept: application/json\r\n"
            f"OpenStack-API-Version: {version}\r\n"
        )
        self.keeps_connections = self._keeps_connections()

    def request(self, method: str, path: str, body: Any = None) -> bytes:
        """Return the bytes of a request."""
        head = f"{method} {self.prefix}{path} HTTP/1.1\r\n{self._headers}"
        if body is None:
            return f"{head}\r\n".encode()
        data = json.dumps(body)  # ASCII, so that characters are bytes
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n{data}".encode()

    def connect(self, blocking: bool) -> socket.socket:
        """Return a connection; a non-blocking one may still be connecting."""
        sock = socket.socket(self.family, socket.SOCK_STREAM)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(TIMEOUT)
        if blocking or self.tls:
            sock.connect(self.address)
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_hostname=self.host)
            sock.setblocking(blocking)
        else:
            sock.setblocking(False)
            failure = sock.connect_ex(self.address)
            if failure not in (0, errno.EINPROGRESS):
                sock.close()
                raise OSError(failure, f"cannot connect to {self.url}")
        return sock

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a blocking request and return the JSON of the response, to prepare a run.

        Raises:
            RuntimeError: The response is an error.
        """
        with contextlib.closing(self.connect(blocking=True)) as sock:
            answer = _exchange(sock, self.request(method, path, body))
        if not 200 <= answer.status < 300:
            raise RuntimeError(f"{method} {self.url}{path} returned {answer.status}: {answer.body.decode()[:500]}")
        return json.loads(answer.body) if answer.body else None

    def _keeps_connections(self) -> bool:
        """Whether connections are persistent, which they are not with ``uwsgi --http-socket``."""
        with contextlib.closing(self.connect(blocking=True)) as sock:
            _exchange(sock, self.request("GET", "/"))
            sock.settimeout(0.1)  # a server that closes does so at once
            try:
                return bool(sock.recv(1))
            except TimeoutError:
                return True


class Parser:
    """An incremental parser of one response."""

    def __init__(self) -> None:
        self._data = bytearray()  # appending to bytes would copy the body for every piece
        self._body_at = 0
        self._end: int | None = None  # None if unknown so far, or if the response ends with the connection
        self.closes = False

    def feed(self, data: bytes) -> Answer | None:
        """Return the response once it is complete, else None.  Empty data means the end of the connection."""
        self._data += data
        if not self._body_at:
            self._read_head()
        arrived = len(self._data)
        complete = arrived >= self._end if self._end is not None else self._body_at > 0 and not data
        return Answer(int(self._data[9:12]), bytes(self._data[self._body_at : self._end])) if complete else None

    def _read_head(self) -> None:
        head, separator, _ = self._data.partition(b"\r\n\r\n")
        if not separator:
            return
        self._body_at = len(head) + 4
        head = head.lower()
        self.closes = b"\r\nconnection: close" in head
        if head[9:12] in (b"204", b"304"):
            self._end = self._body_at
        elif (at := head.find(b"\r\ncontent-length:")) >= 0:
            self._end = self._body_at + int(head[at + 17 :].split(b"\r\n", 1)[0])
        elif b"\r\ntransfer-encoding:" in head:
            raise NotImplementedError("chunked responses are not supported")


def _exchange(sock: socket.socket, request: bytes) -> Answer:
    sock.sendall(request)
    parser = Parser()
    while True:
        data = sock.recv(65536)
        if answer := parser.feed(data):
            return answer
        if not data:
            raise RuntimeError("the connection ended without a response")


@dataclasses.dataclass(frozen=True)
class Result:
    """The statuses, latencies and duration of one run."""

    statuses: collections.Counter[int]
    seconds: float
    latencies: list[float]  # seconds, ascending
    own_seconds: float  # processor time of the load generator itself

    @property
    def answers(self) -> int:
        return self.statuses.total()

    @property
    def successes(self) -> int:
        return sum(n for status, n in self.statuses.items() if 200 <= status < 300)

    @property
    def rate(self) -> float:
        """Successes per second."""
        return self.successes / self.seconds

    def latency(self, share: float) -> float:
        """Return the quantile of the latencies, in seconds; 0.5 is the median."""
        return self.latencies[min(int(len(self.latencies) * share), len(self.latencies) - 1)]


class _Connection:
    """A client and its connection, with one request in progress or a waiting client."""

    def __init__(self, server: Server, client: Client, selector: selectors.BaseSelector) -> None:
        self._server, self._client, self._selector = server, client, selector
        self._socket: socket.socket | None = None
        #: The time at which a waiting client continues; None while a request is in progress.
        self.resumes: float | None = None
        self.begin(next(client))

    def begin(self, request: bytes) -> None:
        self.started = time.perf_counter()
        self._parser = Parser()
        self._unsent = request
        if self._socket is None:
            self._socket = self._server.connect(blocking=False)
            self._selector.register(self._socket, selectors.EVENT_READ, self)
        self._send()

    def _send(self) -> None:
        assert self._socket is not None
        with contextlib.suppress(BlockingIOError, ssl.SSLWantWriteError):  # still connecting
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        events = selectors.EVENT_WRITE if self._unsent else selectors.EVENT_READ
        if self._selector.get_key(self._socket).events != events:
            self._selector.modify(self._socket, events, self)

    def ready(self) -> Answer | None:
        """Continue the request; return the response once it is complete, else None."""
        assert self._socket is not None
        try:
            if self._unsent:
                self._send()
                return None
            data = self._socket.recv(65536)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        except OSError:
            data = b""
        answer = self._parser.feed(data)
        if answer is None and not data:
            answer = Answer(LOST, b"")
        if answer and (not data or self._parser.closes or not self._server.keeps_connections):
            self.close()
        return answer

    def follow(self, answer: Answer | None, more: bool) -> bool:
        """Send the response to the client and, if ``more``, begin its next step; return whether it continues."""
        try:
            step = self._client.send(answer)
        except StopIteration:
            return False
        if more:
            self.resumes = time.perf_counter() + step if isinstance(step, float) else None
            if self.resumes is None:
                self.begin(step)
        return more

    def close(self) -> None:
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None


def run(server: Server, clients: Iterable[Client], seconds: float) -> Result:
    """Run clients for some seconds; requests in progress at the end are completed and counted."""
    statuses: collections.Counter[int] = collections.Counter()
    latencies: list[float] = []
    processor_start, start = time.process_time(), time.perf_counter()
    with selectors.DefaultSelector() as selector:
        connections = {_Connection(server, client, selector) for client in clients}
        busy = set(connections)
        try:
            while busy:
                pause = min([waiting.resumes for waiting in busy if waiting.resumes is not None], default=math.inf)
                events = selector.select(min(max(pause - time.perf_counter(), 0), TIMEOUT))
                if not events and pause == math.inf:
                    raise RuntimeError(f"{server.url} did not respond for {TIMEOUT} seconds")
                for key, _ in events:
                    connection: _Connection = key.data
                    if (answer := connection.ready()) is None:
                        continue
                    now = time.perf_counter()
                    statuses[answer.status] += 1
                    latencies.append(now - connection.started)
                    if not connection.follow(answer, more=now - start < seconds):
                        busy.discard(connection)
                now = time.perf_counter()
                for connection in [
                    connection for connection in busy if connection.resumes is not None and connection.resumes <= now
                ]:
                    if not connection.follow(None, more=now - start < seconds):
                        busy.discard(connection)
        finally:
            for connection in connections:
                connection.close()
    return Result(statuses, time.perf_counter() - start, sorted(latencies), time.process_time() - processor_start)
