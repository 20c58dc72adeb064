"""Two services on one database: a SQLite file, or a private server with a proxy for each service."""

from __future__ import annotations

import contextlib
import secrets

import sqlalchemy as sa

from jepsen.clusters.cluster import Cluster
from jepsen.clusters.services import service
from tests import children, proxies, servers

#: Number of services.
SERVICES = 2


class SQLite(Cluster):
    name = kind = "sqlite"
    #: Context manager that runs a service; other implementations replace it.
    serve = service

    def _start(self, running: contextlib.ExitStack) -> None:
        self._url = f"sqlite:///{children.run_directory() / f'jepsen-{secrets.token_hex(4)}.sqlite'}"
        for _ in range(SERVICES):
            self.services.append(running.enter_context(self.serve(self._url)))

    @property
    def database_url(self) -> str:
        """URL of the file."""
        return self._url


class Server(Cluster):
    """Base class of clusters with one server; ``proxies`` contains one per service: "service 0", "service 1"."""

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
        """URL of the server itself."""
        return self._url


class MariaDB(Server):
    name = kind = "mariadb"


class PostgreSQL(Server):
    name = kind = "postgresql"
