"""haproxy in front of a primary and its replica, as in the sample etc/haproxy/database.cfg, with its health checks."""

from __future__ import annotations

import http.server
import secrets
import threading
from collections.abc import Sequence
from types import TracebackType

import sqlalchemy as sa

from jepsen.clusters.haproxy import Haproxy
from jepsen.clusters.replicas import ReplicatedServer
from tests import children, web_servers


class RoleReport:
    """An HTTP server that responds to ``GET /primary`` with 200 if a database server takes writes, as Patroni does."""

    def __init__(self, server: ReplicatedServer) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if takes_writes(server) else 503)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> RoleReport:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def takes_writes(server: ReplicatedServer) -> bool:
    """Whether the server responds and is the primary."""
    try:
        return server.takes_writes()
    except sa.exc.DBAPIError:
        return False


class Router:
    """A running haproxy that sends connections to the server that takes writes; a context manager."""

    def __init__(self, servers: Sequence[ReplicatedServer], reports: Sequence[RoleReport]) -> None:
        self.port = children.free_port()
        self._names = {server.port: f"database/database{number}" for number, server in enumerate(servers, 1)}
        directory = children.run_directory() / f"router-{secrets.token_hex(4)}"
        directory.mkdir()
        directory.chmod(0o777)  # haproxy runs unprivileged and creates its socket there
        self._haproxy = Haproxy(directory / "admin.sock")
        changes = {
            "/run/haproxy": str(directory),
            "bind 127.0.0.1:3306": f"bind 127.0.0.1:{self.port}",
            " port 8008 inter 500ms": " inter 200ms",
            # A thread of the tests responds, and may have to wait for a processor.
            "timeout check 2s": "timeout check 30s",
        } | {
            f"server database{number} 192.0.2.2{number}:3306": (
                f"server database{number} 127.0.0.1:{server.port} port {report.port}"
            )
            for number, (server, report) in enumerate(zip(servers, reports, strict=True), 1)
        }
        configuration = directory / "haproxy.cfg"
        configuration.write_text(web_servers.fill_sample("haproxy/database.cfg", changes))
        argv = [*web_servers.unprivileged_prefix(), web_servers.haproxy_binary(), "-db", "-f", str(configuration)]
        self._child = children.Child(argv, directory / "log")

    def __enter__(self) -> Router:
        self._child.wait_until(self._answers)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._child.stop()

    def wait_for(self, server: ReplicatedServer, state: str) -> None:
        """Wait until the server is in this state, such as "UP" or "DOWN"."""
        self._haproxy.wait_for(self._names[server.port], state)

    def keep_open_sessions(self, server: ReplicatedServer) -> None:
        """Send no new connections to the server, but keep the open ones even if it becomes a replica."""
        self._haproxy.command(f"disable health {self._names[server.port]}")
        self._haproxy.command(f"set server {self._names[server.port]} state drain")

    def end_open_sessions(self, server: ReplicatedServer) -> None:
        """Undo ``keep_open_sessions``: sessions end because the server is a replica."""
        self._haproxy.command(f"enable health {self._names[server.port]}")
        self.wait_for(server, "DOWN")
        self._haproxy.command(f"set server {self._names[server.port]} state ready")

    def _answers(self) -> bool:
        return self._haproxy.answers()
