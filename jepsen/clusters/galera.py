"""Three nodes of Galera behind haproxy, configured as in the sample etc/haproxy/galera.cfg.

"galera": all connections go to one node, and the others take over if it fails.  "galera-all": the connections of each
worker are spread over all nodes.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import secrets
import signal
import socket
import time
from collections.abc import Sequence
from typing import ClassVar

import sqlalchemy as sa

from jepsen.clusters.cluster import Cluster
from jepsen.clusters.services import service
from placement.db import database
from placement.db.upkeep import standard
from tests import children, galera_network, made, web_servers
from tests.galera_network import Node

NODES, SERVICES = 3, 2
#: Seconds within which all nodes must be synced, and up for haproxy.
_LIMIT = 60.0


class Balancer:
    """A running haproxy whose master process can reload it; a context manager."""

    def __init__(self, nodes: Sequence[Node], *, uses_all_nodes: bool) -> None:
        self.port = children.free_port()
        self._directory = children.run_directory() / f"haproxy-{secrets.token_hex(4)}"
        self._directory.mkdir()
        changes = {
            "/run/haproxy": str(self._directory),
            "bind 127.0.0.1:3306": f"bind 127.0.0.1:{self.port}",
            **{f"192.0.2.{20 + n}:3306": f"{node.url.host}:{node.port}" for n, node in enumerate(nodes, 1)},
        }
        if uses_all_nodes:
            changes |= {"    stick-table type integer size 1\n    stick on int(1)\n": "", " backup\n": "\n"}
        self._configuration = self._directory / "haproxy.cfg"
        self._configuration.write_text(web_servers.fill_sample("haproxy/galera.cfg", changes))

    def __enter__(self) -> Balancer:
        self._child = children.Child(
            [web_servers.haproxy_binary(), "-W", "-f", str(self._configuration)], self._directory / "log"
        )
        self._child.wait_until(self._answers)
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()

    def restart(self) -> None:
        """Kill haproxy with all connections, and start it again."""
        self._child.kill()
        self.__enter__()

    def reload(self) -> None:
        """Start another process with the same configuration; the old one keeps its connections for some seconds."""
        old = self._status()["Pid"]
        os.kill(self._child.pid, signal.SIGUSR2)
        self._child.wait_until(lambda: self._answers() and self._status()["Pid"] != old)

    def nodes_up(self) -> int:
        """Return the number of nodes that are up."""
        return sum(row["status"].startswith("UP") for row in self._nodes())

    def busiest_index(self) -> int:
        """Return the index of the node with the most connections."""
        rows = self._nodes()
        return max(range(len(rows)), key=lambda number: int(rows[number]["scur"]))

    def _nodes(self) -> list[dict[str, str]]:
        rows = csv.DictReader(io.StringIO(self._command("show stat").removeprefix("# ")))
        return [row for row in rows if row["svname"].startswith("node")]

    def _status(self) -> dict[str, str]:
        lines = (line.partition(": ") for line in self._command("show info").splitlines())
        return {name: value for name, _, value in lines}

    def _answers(self) -> bool:
        try:
            return bool(self._nodes())
        except OSError:
            return False

    def _command(self, text: str) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._directory / "admin.sock"))
            connection.sendall(f"{text}\n".encode())
            with connection.makefile() as reply:
                return reply.read()


class Galera(Cluster):
    """A cluster with all connections to one node.

    Attributes:
        servers: The nodes, in the order of their numbers.
        nodes: The Galera cluster with its network.
        balancer: haproxy, to which the services connect.
    """

    name = "galera"
    kind = "mariadb"
    uses_all_nodes: ClassVar[bool] = False

    def _start(self, running: contextlib.ExitStack) -> None:
        self.nodes = running.enter_context(galera_network.cluster(NODES))
        self.servers = [*self.nodes.nodes]
        self.balancer = running.enter_context(Balancer(self.nodes.nodes, uses_all_nodes=self.uses_all_nodes))
        self.wait_until_complete()
        self._url = sa.make_url(self.servers[0].create_database())
        through = self._url.set(host="127.0.0.1", port=self.balancer.port).render_as_string(hide_password=False)
        # The schema is created once, on one node, as docs/deployment.rst says: its lock does not exist on other nodes.
        if self.tree is None:  # an older version creates its schema itself; all its connections go to one node then
            with database.open_database(self.database_url) as opened:
                made.sync(opened.engine)
                standard.insert(opened)
        for _ in range(SERVICES):
            self.services.append(running.enter_context(service(self, through)))

    def wait_until_complete(self) -> None:
        """Wait until all nodes are synced, and up for haproxy.

        Without this, a second failure could leave no majority.  A paused node reports that it is synced until it
        notices that the group has continued without it, so the nodes are polled repeatedly.
        """
        deadline = time.monotonic() + _LIMIT
        self.nodes.wait_until_complete()
        while (up := self.balancer.nodes_up()) != NODES:
            assert time.monotonic() < deadline, f"{up} nodes are up, not {NODES}"
            time.sleep(0.05)
            self.nodes.wait_until_complete()

    @property
    def busiest_node(self) -> Node:
        """The node with the most connections."""
        return self.nodes.nodes[self.balancer.busiest_index()]

    @property
    def database_url(self) -> str:
        """URL of the first node."""
        return self._url.render_as_string(hide_password=False)


class GaleraAll(Galera):
    """A cluster with connections to all nodes."""

    name = "galera-all"
    uses_all_nodes = True
