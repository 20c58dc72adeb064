"""A TCP proxy between the service and its database, which can be switched to another server, or fail in many ways."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator

from tests import children
from tests.proxy_faults import Manner, Reset, Silent


class Proxy:
    """A proxy that forwards each connection to the `target` at its opening, in the current `manner`."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.manner = Manner()
        self._listening = socket.create_server(("127.0.0.1", children.free_port()), backlog=128)
        self._listening.settimeout(0.1)  # a connection reported by select may be closed before it is accepted
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
    def behaving(self, manner: Manner) -> Iterator[None]:
        """Forward all connections in a manner during a block."""
        before, self.manner = self.manner, manner
        try:
            yield
        finally:
            self.manner = before

    def silent(self) -> contextlib.AbstractContextManager[None]:
        """Return a block in which all data is dropped, while connections stay open."""
        return self.behaving(Silent())

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse new connections during a block, while others continue."""
        self._listening.shutdown(socket.SHUT_RDWR)  # in Linux, a socket bound to a named port keeps it
        try:
            yield
        finally:
            self._listening.listen(128)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listening.accept()
            except TimeoutError:
                continue
            except OSError:  # the proxy refuses connections
                time.sleep(0.05)
                continue
            thread = threading.Thread(target=self._forward, args=(client,), daemon=True)
            self._threads = [*(worker for worker in self._threads if worker.is_alive()), thread]
            thread.start()

    def _forward(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.target)) as server:
            try:
                self._exchange(client, server)
            except Reset:
                for connection in (client, server):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _exchange(self, client: socket.socket, server: socket.socket) -> None:
        """Forward in both directions until one end is closed."""
        while not self._closed.is_set():
            readable = select.select([client, server], [], [], 0.1)[0]
            if not readable:
                self.manner.idle(client)
            for sender in readable:
                data = sender.recv(65536)
                if not data:
                    return
                if sender is client:
                    server.sendall(self.manner.to_server(client, data))
                else:
                    client.sendall(self.manner.to_client(client, data))


@contextlib.contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    """Provide a proxy during a block."""
    new_proxy = Proxy(target)
    try:
        yield new_proxy
    finally:
        new_proxy.close()
