"""Services on two hosts behind haproxy, as in the sample etc/haproxy/placement.cfg, on a replicated database."""

from __future__ import annotations

import configparser
import contextlib
import re
from collections import Counter
from collections.abc import Sequence

from jepsen.clusters.cluster import Cluster
from jepsen.clusters.galera import Galera
from jepsen.clusters.haproxy import Haproxy
from jepsen.clusters.pairs import MariaDBPair, PostgreSQLPair, PostgreSQLSynchronous
from jepsen.clusters.services import service
from tests import web_servers
from tests.running import Service

#: Line of haproxy's log ("HTTP log format") about a request that was cut off: server, termination state, method, path.
_CUT_OFF = re.compile(r" placement (placement/\S+) \S+ -?\d+ \d+ - - ([A-Zs]\S{3}) \S+ \S+ \"(\S+) (\S+) ")


class Hosts(Cluster):
    """Mixin of clusters whose clients connect to haproxy, and whose hosts can be added and removed.

    The number of a host is its index in ``services``; haproxy calls the hosts controller1, controller2, ...
    """

    def _start(self, running: contextlib.ExitStack) -> None:
        super()._start(running)
        first, second = self.services
        self._front = running.enter_context(web_servers.haproxy(first, second))
        self.haproxy = Haproxy(self._front.directory / "admin.sock")
        for number in range(len(self.services)):
            self.haproxy.wait_for(server_name(number), "UP")

    @property
    def urls(self) -> Sequence[str]:
        """URL of haproxy."""
        return [self._front.url]

    def drain(self, number: int) -> None:
        """Take a host out of service once it has responded to all requests, and stop its service."""
        self.haproxy.drain(server_name(number))
        self.services[number].stop()

    def put_back(self, number: int) -> None:
        """Start the service of a host again, with the cluster's current version, and send it requests."""
        self.services[number] = service_of_host = self._start_service()
        self.haproxy.change(f"set server {server_name(number)} addr 127.0.0.1 port {service_of_host.port}")
        self.haproxy.change(f"set server {server_name(number)} state ready")
        self.haproxy.wait_for(server_name(number), "UP")

    def add(self) -> None:
        """Start a service on another host, and send it requests."""
        number = len(self.services)
        self.services.append(service_of_host := self._start_service())
        self.haproxy.change(f"add server {server_name(number)} 127.0.0.1:{service_of_host.port} check")
        self.haproxy.change(f"enable health {server_name(number)}")
        self.haproxy.change(f"enable server {server_name(number)}")
        self.haproxy.wait_for(server_name(number), "UP")

    def remove(self) -> None:
        """Drain the last host, stop its service and remove it."""
        number = len(self.services) - 1
        self.drain(number)
        self.services.pop()
        self.haproxy.change(f"set server {server_name(number)} state maint")
        self.haproxy.change(f"del server {server_name(number)}")

    def requests_cut_off(self) -> Counter[tuple[str, str, str]]:
        """Count the requests that got no complete response from a host, by haproxy's server name, method and path."""
        failures = _CUT_OFF.findall(self._front.log.read_text(errors="replace"))
        return Counter((host, method, path) for host, _, method, path in failures)

    def database_of_services(self) -> str:
        """Return the database URL in the services' configuration, which may name a proxy."""
        configuration = configparser.RawConfigParser()
        configuration.read(self.services[0].directory / "placement.conf")
        return configuration["placement_database"]["connection"]

    def _start_service(self) -> Service:
        return self._running.enter_context(service(self, self.database_of_services()))


def server_name(number: int) -> str:
    """Return haproxy's name for a host."""
    return f"placement/controller{number + 1}"


class MariaDBHosts(Hosts, MariaDBPair):
    name = "mariadb-hosts"


class PostgreSQLHosts(Hosts, PostgreSQLPair):
    name = "postgresql-hosts"


class PostgreSQLSynchronousHosts(Hosts, PostgreSQLSynchronous):
    name = "postgresql-hosts-sync"


class GaleraHosts(Hosts, Galera):
    name = "galera-hosts"
