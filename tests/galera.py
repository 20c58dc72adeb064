"""A private Galera cluster for the tests: two nodes of MariaDB, both written to."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from tests import children, servers

LIBRARY = Path("/usr/lib/galera/libgalera_smm.so")


class Node(servers.MariaDB):
    """A node; the one without a neighbour starts the cluster."""

    def __init__(self, directory: Path, neighbour: Node | None = None) -> None:
        super().__init__(directory, password=neighbour.password if neighbour else None)
        self._neighbour = neighbour
        self._group_port, self._transfer_port, self._state_port = (children.free_port() for _ in range(3))

    @classmethod
    def check_installed(cls) -> None:
        super().check_installed()
        if not LIBRARY.exists():
            raise servers.Missing(f"{LIBRARY} is not installed: `make servers` installs galera-4 with mariadb-server")

    programs = (*servers.MariaDB.programs, "rsync", "ss")

    def _command(self) -> list[str]:
        address = f"127.0.0.1:{self._group_port}"
        provider = {
            "base_host": "127.0.0.1",
            "base_port": self._group_port,
            "gmcast.listen_addr": f"tcp://{address}",
            "ist.recv_addr": f"127.0.0.1:{self._transfer_port}",
            "gcache.size": "16M",
            "pc.recovery": "false",
        }
        return [
            *super()._command(),
            *("--wsrep-on=ON", f"--wsrep-provider={LIBRARY}", f"--wsrep-node-address={address}"),
            *("--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-sst-method=rsync"),
            f"--wsrep-sst-receive-address=127.0.0.1:{self._state_port}",
            f"--wsrep-cluster-address=gcomm://{f'127.0.0.1:{self._neighbour._group_port}' if self._neighbour else ''}",
            *(() if self._neighbour else ("--wsrep-new-cluster",)),
            f"--wsrep-provider-options={';'.join(f'{name}={value}' for name, value in provider.items())}",
        ]

    def _answers(self) -> bool:
        if not super()._answers():
            return False
        return [row[1] for row in self._administer("SHOW STATUS LIKE 'wsrep_local_state_comment'")] == ["Synced"]

    def copy_to(self, other: Node) -> None:
        """Copy the data to the other node, while not in use: a node with all data joins without a transfer."""
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
        self.nodes = [first, Node(directory / f"galera-{secrets.token_hex(4)}", neighbour=first)]

    def start(self) -> None:
        """Return once both nodes are synced."""
        first, second = self.nodes
        first.start()
        first.stop()
        first.copy_to(second)
        first.start()
        second.start()

    def stop(self) -> None:
        for node in reversed(self.nodes):
            with contextlib.suppress(AttributeError):  # it was never started
                node.stop()
            shutil.rmtree(node.directory, ignore_errors=True)

    def create_database(self) -> list[str]:
        """Create a database; return its URLs, one at each node."""
        url = sa.make_url(self.nodes[0].create_database())
        return [url.set(port=node.port).render_as_string(hide_password=False) for node in self.nodes]


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """Provide a cluster that only the caller uses; raises Missing."""
    Node.check_installed()
    made = Cluster()
    try:
        made.start()
        yield made
    finally:
        made.stop()
