"""Requests that no HTTP library sends: bytes to a socket, and the response."""

from __future__ import annotations

import contextlib
import re
import socket
from typing import NamedTuple

from tests.children import PATIENCE

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class Reply(NamedTuple):
    """The bytes that a server sent before it closed the connection; status 0 if they are not an HTTP response."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def names(self) -> list[str]:
        """Return the names of the headers, in lower case."""
        return [name.lower() for name, _ in self.headers]

    def header(self, name: str) -> str:
        """Return the value of a header; raise StopIteration if it is missing."""
        return next(value for header_name, value in self.headers if header_name.lower() == name.lower())


def send(port: int, request: bytes, seconds: float = PATIENCE) -> Reply:
    """Send bytes and return the response; raise ValueError if a line of its head contains control characters."""
    received = bytearray()
    with contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=seconds)) as connection:
        # A server may respond and close before it has read the whole request.
        with contextlib.suppress(OSError):
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while piece := connection.recv(65536):
                received += piece
    return _parse(bytes(received))


def _parse(received: bytes) -> Reply:
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    # uWSGI repeats the version of the request, such as HTTP/1.
    match = re.fullmatch(rb"HTTP/1[.\d]* (\d{3}) [ -~]*", first)
    if not match:
        return Reply(0, (), received)
    if any(_CONTROL.search(line) for line in lines):
        raise ValueError(f"control characters in {head!r}")
    headers = tuple((name.decode(), value.strip().decode("latin-1")) for name, _, value in _split(lines))
    return Reply(int(match[1]), headers, body)


def _split(lines: list[bytes]) -> list[tuple[bytes, bytes, bytes]]:
    return [line.partition(b":") for line in lines]
