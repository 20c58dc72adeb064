"""Private Galera clusters for the tests: nodes of MariaDB on this host, which all accept writes."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests import children, servers

LIBRARY = Path("/usr/lib/galera/libgalera_smm.so")


class Node(servers.MariaDB):
    """A node; one without neighbours bootstraps a cluster, the others join their neighbours.

    Attributes:
        neighbours: The other nodes of the cluster.
    """

    def __init__(self, directory: Path, password: str | None = None) -> None:
        super().__init__(directory, password=password)
        self.neighbours: Sequence[Node] = ()
        self._group_port, self._transfer_port, self._state_port = (children.free_port() for _ in range(3))

    @classmethod
    def check_installed(cls) -> None:
        super().check_installed()
        if not LIBRARY.exists():
            raise servers.Missing(f"{LIBRARY} is not installed: `make servers` installs galera-4 with mariadb-server")

    programs = (*servers.MariaDB.programs, "rsync", "ss")

    @property
    def group_address(self) -> str:
        """The address of the node for the other nodes."""
        return f"127.0.0.1:{self._group_port}"

    def _provider_options(self) -> Mapping[str, Any]:
        return {
            "base_host": "127.0.0.1",
            "base_port": self._group_port,
            "gmcast.listen_addr": f"tcp://{self.group_address}",
            "ist.recv_addr": f"127.0.0.1:{self._transfer_port}",
            "gcache.size": "16M",
            "pc.recovery": "false",
            # A node on a busy machine may be silent for long.
            "evs.suspect_timeout": "PT60S",
            "evs.inactive_timeout": "PT120S",
            "pc.wait_prim_timeout": "PT300S",
        }

    def _command(self) -> list[str]:
        options = ";".join(f"{name}={value}" for name, value in self._provider_options().items())
        return [
            *super()._command(),
            *("--wsrep-on=ON", f"--wsrep-provider={LIBRARY}", f"--wsrep-node-address={self.group_address}"),
            *("--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-sst-method=rsync"),
            f"--wsrep-sst-receive-address=127.0.0.1:{self._state_port}",
            f"--wsrep-cluster-address=gcomm://{','.join(node.group_address for node in self.neighbours)}",
            *(() if self.neighbours else ("--wsrep-new-cluster",)),
            f"--wsrep-provider-options={options}",
        ]

    def _answers(self) -> bool:
        return super()._answers() and self.status("local_state_comment") == "Synced"

    def status(self, name: str) -> str:
        """Return a status variable of the cluster, by its name after "wsrep_"; raise OperationalError if it fails."""
        [(_, value)] = self._administer(f"SHOW STATUS LIKE 'wsrep_{name}'")
        return str(value)

    def is_synced_with(self, nodes: int) -> bool:
        """Whether the node is synced in a group of ``nodes`` nodes."""
        return self._answers() and self.status("cluster_size") == str(nodes)

    def copy_to(self, other: Node) -> None:
        """Copy the unused data to another node, which then joins without a transfer."""
        shutil.copytree(self.directory, other.directory)
        (other.directory / "start.sql").write_text("")
        if self._identity:
            for path in (other.directory, *other.directory.rglob("*")):
                shutil.chown(path, self._identity["user"], self._identity["group"])


class Cluster:
    """A cluster of two nodes."""

    def __init__(self) -> None:
        directory = children.run_directory()
        first = Node(directory / f"galera-{secrets.token_hex(4)}")
        second = Node(directory / f"galera-{secrets.token_hex(4)}", first.password)
        self.nodes = [first, second]

    def start(self) -> None:
        """Start the cluster; return once both nodes are synced."""
        first, second = self.nodes
        first.start()
        first.stop()
        first.copy_to(second)
        first.start()
        second.neighbours = [first]
        second.start()

    def stop(self) -> None:
        for node in reversed(self.nodes):
            with contextlib.suppress(AttributeError):  # it was never started
                node.stop()
            shutil.rmtree(node.directory, ignore_errors=True)

    def create_database(self) -> list[str]:
        """Create a database; return its URLs, one on each node."""
        url = sa.make_url(self.nodes[0].create_database())
        return [url.set(port=node.port).render_as_string(hide_password=False) for node in self.nodes]


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """Provide a cluster exclusive to the caller; raise Missing if Galera is not installed."""
    Node.check_installed()
    new_cluster = Cluster()
    try:
        new_cluster.start()
        yield new_cluster
    finally:
        new_cluster.stop()
