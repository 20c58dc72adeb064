"""A primary and its replica behind haproxy, with asynchronous or synchronous replication.

A failover to an asynchronous replica may lose the last commits; in the synchronous variants, each COMMIT waits for the
replica.  Services connect to haproxy, whose health checks find the server that takes writes.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from typing import ClassVar

import sqlalchemy as sa

from jepsen.clusters import replicas
from jepsen.clusters.cluster import Cluster
from jepsen.clusters.router import RoleReport, Router
from jepsen.clusters.services import service
from tests import children, proxies

#: Number of services.
SERVICES = 2


class Pair(Cluster):
    """Base class of clusters with a primary and a replica.

    Attributes:
        servers: The primary, then the replica; a role change reorders them.
        router: haproxy, to which the services connect.
        link: Proxy through which the replica reaches the primary.
        waits_for_replica: Whether a COMMIT waits for the replica, so that a failover loses nothing.
    """

    waits_for_replica: ClassVar[bool] = False

    def _start(self, running: contextlib.ExitStack) -> None:
        self._start_servers(running)
        reports = [running.enter_context(RoleReport(server)) for server in self.servers]
        self.router = running.enter_context(Router(self.servers, reports))
        self.router.wait_for(self.servers[0], "UP")
        self.router.wait_for(self.servers[1], "DOWN")
        self._url = sa.make_url(self.servers[0].create_database())
        through = self._url.set(port=self.router.port).render_as_string(hide_password=False)
        for _ in range(SERVICES):
            self.services.append(running.enter_context(service(self, through)))

    @property
    def database_url(self) -> str:
        """URL of the primary itself."""
        return self._url.set(port=self.servers[0].port).render_as_string(hide_password=False)

    def _start_servers(self, running: contextlib.ExitStack) -> None:
        make = replicas.KINDS[self.kind]
        make.check_installed()
        password = secrets.token_hex(16)
        first, second = (
            make(children.run_directory() / f"pair-{secrets.token_hex(4)}", password, self.waits_for_replica)
            for _ in range(2)
        )
        for server in (first, second):
            running.callback(shutil.rmtree, server.directory, ignore_errors=True)
        first.start()
        running.callback(first.stop)
        self.link = running.enter_context(proxies.proxy(first.port))
        second.begin_as_copy(first, self.link.port)
        running.callback(second.stop)
        self.servers = [first, second]


class MariaDBPair(Pair):
    name = "mariadb-pair"
    kind = "mariadb"


class MariaDBSemiSynchronous(MariaDBPair):
    name = "mariadb-pair-semisync"
    waits_for_replica = True


class PostgreSQLPair(Pair):
    name = "postgresql-pair"
    kind = "postgresql"


class PostgreSQLSynchronous(PostgreSQLPair):
    name = "postgresql-pair-sync"
    waits_for_replica = True
