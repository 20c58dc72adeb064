"""A TCP proxy between the service and its database, which can be switched to another server, or drop everything."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator


class Proxy:
    """Forwards each connection to the port that is `target` when it is made."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._swallows = False
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listening.getsockname()[1]
        self._closed = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """End all connections."""
        self._closed.set()
        for thread in self._threads:
            thread.join()
        self._listening.close()

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """A block in which all data is dropped, while connections stay open."""
        self._swallows = True
        yield
        self._swallows = False

    def _accept(self) -> None:
        while not self._closed.is_set():
            if select.select([self._listening], [], [], 0.1)[0]:
                client, _ = self._listening.accept()
                thread = threading.Thread(target=self._forward, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _forward(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.target)) as server:
            other = {client: server, server: client}
            while not self._closed.is_set():
                for one in select.select([client, server], [], [], 0.1)[0]:
                    said = one.recv(65536)
                    if not said:
                        return
                    if not self._swallows:
                        other[one].sendall(said)


@contextlib.contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    """A proxy for the length of a block."""
    made = Proxy(target)
    try:
        yield made
    finally:
        made.close()
