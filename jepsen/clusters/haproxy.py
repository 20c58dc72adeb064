"""Runtime control of haproxy through its socket; servers are named "backend/server"."""

from __future__ import annotations

import csv
import io
import socket
import time
from pathlib import Path

#: Seconds within which a server must change its state.
_LIMIT = 60.0
#: Replies that confirm a command; other successful commands have an empty reply.
_CONFIRMATIONS = ("port changed", "New server registered", "Server deleted")


class Haproxy:
    """Commands of the runtime API (haproxy's management guide, section 9.3)."""

    def __init__(self, address: Path) -> None:
        self._address = address

    def command(self, text: str) -> str:
        """Return the reply to a command."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._address))
            connection.sendall(f"{text}\n".encode())
            with connection.makefile() as reply:
                return reply.read()

    def change(self, text: str) -> None:
        """Run a command; raise AssertionError if haproxy refuses it."""
        reply = self.command(text).strip()
        assert not reply or any(words in reply for words in _CONFIRMATIONS), reply

    def answers(self) -> bool:
        """Whether haproxy accepts commands."""
        try:
            return "svname" in self.command("show stat")
        except OSError:
            return False

    def wait_for(self, server: str, state: str) -> None:
        """Wait until the server is in this state, such as "UP" or "DOWN"."""
        deadline = time.monotonic() + _LIMIT
        while (current := self._statistics(server)["status"]) != state:
            assert time.monotonic() < deadline, f"{server} is {current}, not {state}"
            time.sleep(0.02)

    def successes(self, server: str) -> int:
        """Return the number of successful responses of the server."""
        return int(self._statistics(server)["hrsp_2xx"])

    def drain(self, server: str) -> None:
        """Send no new requests to the server, and wait until it has responded to all."""
        self.change(f"set server {server} state drain")
        deadline = time.monotonic() + _LIMIT
        while (statistics := self._statistics(server))["scur"] != "0" or statistics["qcur"] != "0":
            assert time.monotonic() < deadline, f"{server} has {statistics['scur']} sessions"
            time.sleep(0.02)

    def _statistics(self, server: str) -> dict[str, str]:
        rows = csv.DictReader(io.StringIO(self.command("show stat").removeprefix("# ")))
        [row] = [row for row in rows if f"{row['pxname']}/{row['svname']}" == server]
        return row
