"""Manners in which a proxy forwards data between the service and its database: at once, late, never, or no COMMIT."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable

#: The bytes that a client sends to commit: MariaDB's COM_QUERY; PostgreSQL's Query, or a Parse among other messages.
_COMMIT = re.compile(rb"\A...\0\x03COMMIT;?\Z|Q\0\0..COMMIT;?\0|P\0\0..[^\0]*\0COMMIT;?\0", re.DOTALL)


class Reset(Exception):
    """Both ends of the connection must be reset (RST)."""


class Manner:
    """A manner that forwards all at once.  Each method may raise Reset, or wait; any key identifies a connection."""

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        """Return the part of a client's data to forward to the server."""
        return data

    def to_client(self, connection: Hashable, data: bytes) -> bytes:
        """Return the part of the server's data to forward to the client."""
        return data

    def idle(self, connection: Hashable) -> None:
        """Called ten times a second while the connection is silent."""


class Silent(Manner):
    """A manner that drops all data, while connections stay open."""

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        return b""

    to_client = to_server


class Resets(Manner):
    """A manner that resets connections, including new ones; ``is_chosen()`` decides once for each."""

    def __init__(self, is_chosen: Callable[[], bool] = lambda: True) -> None:
        self._is_chosen = is_chosen
        self._spared: set[Hashable] = set()

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        self.idle(connection)
        return data

    to_client = to_server

    def idle(self, connection: Hashable) -> None:
        if connection not in self._spared:
            if self._is_chosen():
                raise Reset
            self._spared.add(connection)


class Delays(Manner):
    """A manner that forwards every packet ``seconds()`` later, which may differ for each."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        time.sleep(self._seconds())
        return data

    to_client = to_server


class CutsAtCommit(Manner):
    """A manner that resets a connection at a COMMIT if ``is_chosen()``, before the server gets it or after it responds.

    Attributes:
        cut: The number of transactions cut.
    """

    def __init__(self, is_chosen: Callable[[], bool], *, forwards: bool) -> None:
        self._is_chosen, self._forwards = is_chosen, forwards
        self._committing: set[Hashable] = set()
        self.cut = 0

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        if _COMMIT.search(data) and self._is_chosen():
            self.cut += 1
            if not self._forwards:
                raise Reset
            self._committing.add(connection)
        return data

    def to_client(self, connection: Hashable, data: bytes) -> bytes:
        if connection in self._committing:
            raise Reset
        return data
