"""How a proxy between the service and its database forwards data: at once, late, not at all, all but a COMMIT."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable

#: What a client sends to commit: MariaDB's COM_QUERY; PostgreSQL's Query, or a Parse in a series of messages.
_COMMIT = re.compile(rb"\A...\0\x03COMMIT;?\Z|Q\0\0..COMMIT;?\0|P\0\0..[^\0]*\0COMMIT;?\0", re.DOTALL)


class Reset(Exception):
    """Both ends of the connection are to be reset (RST)."""


class Manner:
    """This one forwards all at once.  Each method may raise Reset, or wait; a connection is any key of it."""

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        """Return what is sent to the server of what a client has sent."""
        return data

    def to_client(self, connection: Hashable, data: bytes) -> bytes:
        """Return what is sent to the client of what the server has sent."""
        return data

    def idle(self, connection: Hashable) -> None:
        """Called ten times a second while the connection is silent."""


class Silent(Manner):
    """All data are dropped, while connections stay open."""

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        return b""

    to_client = to_server


class Resets(Manner):
    """Connections are reset, new ones too; it is decided once for each by ``chosen()``."""

    def __init__(self, chosen: Callable[[], bool] = lambda: True) -> None:
        self._chosen = chosen
        self._spared: set[Hashable] = set()

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        self.idle(connection)
        return data

    to_client = to_server

    def idle(self, connection: Hashable) -> None:
        if connection not in self._spared:
            if self._chosen():
                raise Reset
            self._spared.add(connection)


class Delays(Manner):
    """Every packet is forwarded ``seconds()`` later, which may differ for each."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        time.sleep(self._seconds())
        return data

    to_client = to_server


class CutsAtCommit(Manner):
    """A connection that sends a COMMIT is reset if ``chosen()``: before the server has it, or when it has answered.

    Attributes:
        cut: How many transactions were cut.
    """

    def __init__(self, chosen: Callable[[], bool], *, forwards: bool) -> None:
        self._chosen, self._forwards = chosen, forwards
        self._committing: set[Hashable] = set()
        self.cut = 0

    def to_server(self, connection: Hashable, data: bytes) -> bytes:
        if _COMMIT.search(data) and self._chosen():
            self.cut += 1
            if not self._forwards:
                raise Reset
            self._committing.add(connection)
        return data

    def to_client(self, connection: Hashable, data: bytes) -> bytes:
        if connection in self._committing:
            raise Reset
        return data
