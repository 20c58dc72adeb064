"""Two services on one database: a file for SQLite; else a private server, with a proxy before it for each service."""

from __future__ import annotations

import contextlib
import secrets

import sqlalchemy as sa

from jepsen.clusters.cluster import Cluster
from jepsen.clusters.services import service
from tests import children, proxies, servers

#: How many services there are.
SERVICES = 2


class SQLite(Cluster):
    name = kind = "sqlite"
    #: Starts one service; other implementations have another way.
    serve = service

    def _start(self, running: contextlib.ExitStack) -> None:
        self._url = f"sqlite:///{children.run_directory() / f'jepsen-{secrets.token_hex(4)}.sqlite'}"
        for _ in range(SERVICES):
            self.services.append(running.enter_context(self.serve(self._url)))

    @property
    def database_url(self) -> str:
        """The URL of the file."""
        return self._url


class Server(Cluster):
    """The common part of those with a server; ``proxies`` has one for each service: "service 0", "service 1"."""

    serve = service

    def _start(self, running: contextlib.ExitStack) -> None:
        server = running.enter_context(servers.private(self.kind))
        self.servers.append(server)
        self._url = server.create_database()
        for number in range(SERVICES):
            proxy = running.enter_context(proxies.proxy(server.port))
            self.proxies[f"service {number}"] = proxy
            through = sa.make_url(self._url).set(port=proxy.port).render_as_string(hide_password=False)
            self.services.append(running.enter_context(self.serve(through)))

    @property
    def database_url(self) -> str:
        """The URL at the server itself."""
        return self._url


class MariaDB(Server):
    name = kind = "mariadb"


class PostgreSQL(Server):
    name = kind = "postgresql"
