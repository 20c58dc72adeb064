"""A private Galera cluster, whose nodes may be killed, paused and disconnected: each is a host of a private network."""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests import children, galera
from tests.docs.blocks import text_of
from tests.namespaces import CLIENTS, GROUP, Host, Network

PORT = 3306
#: The recommended options of docs/deployment.rst (section "Galera"), of the server and of the provider.
_ADVISED = dict(re.findall(r'^(\w+) = "?(.*?)"?$', text_of("docs/deployment.rst", "mariadb.cnf"), re.MULTILINE))
_EXPULSION = dict(option.split("=") for option in _ADVISED["wsrep_provider_options"].split("; "))
#: Seconds after which a silent node is expelled, and by which nodes outside of the group have found each other if
#: possible: evs.inactive_timeout.
EXPULSION = 6.0
#: Seconds between checks of nodes while others start.
_INTERVAL = 0.5
#: The status of a node in the primary view, and of one that has left the group until a restart.
_PRIMARY, _LEFT = "Primary", "Disconnected"


class Node(galera.Node):
    """A node on its own host; its clients are the hosts of the network and this process."""

    def __init__(self, host: Host, password: str | None = None) -> None:
        super().__init__(children.run_directory() / f"galera-{secrets.token_hex(4)}", password)
        self.host = host
        self.name = f"node{host.number + 1}"
        self.port = PORT
        self.url = self.url.set(host=host.address[CLIENTS], port=PORT)

    @property
    def group_address(self) -> str:
        return self.host.address[GROUP]

    def recovered_position(self) -> str:
        """Return the group and the number of the last transaction in the data of a stopped node, "UUID:NUMBER"."""
        argv = [*self._command(), "--wsrep-recover", "--disable-log-error", "--skip-networking"]
        completed = subprocess.run(
            argv, capture_output=True, text=True, cwd="/", env=self._environment, **self._identity
        )
        match = re.search(r"Recovered position: (\S+)", completed.stderr)
        if match is None:
            raise RuntimeError(f"{argv!r} shows no position:\n{completed.stdout}{completed.stderr}")
        return match[1]

    def is_primary(self) -> bool:
        """Whether the node is in the primary view; raise OperationalError if it does not respond."""
        return self.status("cluster_status") == _PRIMARY

    def bootstrap(self) -> None:
        """Make the node, and the nodes that it reaches, the primary view."""
        self._administer("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")

    def leave(self) -> None:
        """Make the node leave the group until a restart, like a node that finds its data inconsistent."""
        self._administer("SET GLOBAL wsrep_cluster_address = ''")

    @property
    def _operators_url(self) -> sa.URL:
        # Outside of the primary view a node refuses the first statement of a driver, unless it may return old data.
        return self.url.update_query_dict({"init_command": "SET wsrep_dirty_reads = ON"})

    def allow_beginning(self) -> None:
        """Allow the node to bootstrap, although it was not the last one to stop."""
        text = self._state_file.read_text()
        self._state_file.write_text(text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"))

    def _initialise(self) -> None:
        super()._initialise()
        with (self.directory / "start.sql").open("a") as init_file:
            init_file.write(
                f"CREATE USER placement@'%' IDENTIFIED BY '{self.password}';\n"
                "GRANT ALL ON *.* TO placement@'%' WITH GRANT OPTION;\n"
                "CREATE USER haproxy@'%';\n"
            )

    def _provider_options(self) -> Mapping[str, Any]:
        return {"gcache.size": "16M", "pc.recovery": "false", **_EXPULSION}

    def _command(self) -> list[str]:
        return [
            *super()._command(),
            *("--bind-address=0.0.0.0", f"--wsrep-sst-receive-address={self.group_address}"),
            # Not the first node, if possible: a node that transfers its data to another one accepts no writes.
            *(f"--wsrep-node-name={self.name}", f"--wsrep-sst-donor={_ADVISED['wsrep_sst_donor']}"),
        ]

    def _start_as(self) -> tuple[list[str], dict[str, Any]]:
        user, group = self._identity["user"], self._identity["group"]
        # Not for the command that enters the namespace as root: the server could not open files of its libfaketime.
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return [*self.host.namespace.enter((user, group)), "env", *variables, *self._command(), *self._position()], {}

    @property
    def _environment(self) -> dict[str, str]:
        return {name: value for name, value in super()._environment.items() if name not in self.environment}

    def _position(self) -> list[str]:
        """Return the option that Debian's unit adds by galera_recovery; without it a killed node transfers all data."""
        state = self._state_file
        killed = state.exists() and re.search(r"^seqno: +-1$", state.read_text(), re.MULTILINE)
        return [f"--wsrep-start-position={self.recovered_position()}"] if killed else []

    @property
    def _state_file(self) -> Path:
        return self.directory / "data" / "grastate.dat"


class _Operator:
    """An operator who follows docs/deployment.rst if the nodes do not form a group by themselves."""

    def __init__(self, nodes: Sequence[Node], cluster: Cluster | None = None) -> None:
        """Prepare to act on the running nodes; pass the cluster if nodes that have left it should be restarted."""
        self._nodes, self._cluster = nodes, cluster
        self._last_whole = time.monotonic()

    def look(self) -> None:
        """Take the next step, if one is due; called repeatedly while waiting for nodes."""
        statuses, now = self._statuses(), time.monotonic()
        if not statuses or (_PRIMARY in statuses and _LEFT not in statuses):
            self._last_whole = now
        elif now > self._last_whole + EXPULSION:
            self._mend(statuses)
            self._last_whole = time.monotonic()

    def _mend(self, statuses: Sequence[str]) -> None:
        departed = [node for node, status in zip(self._nodes, statuses, strict=True) if status == _LEFT]
        if not departed:
            # A node has died while the others were disconnected: none of them has a majority, not even after they meet,
            # while a member of the last primary view is missing.
            with contextlib.suppress(sa.exc.OperationalError):  # the view is changing: another call follows
                max(self._nodes, key=lambda node: int(node.status("last_committed"))).bootstrap()
        elif self._cluster:
            # Without a primary view all are restarted: a node that has left may have the last transaction.
            self._cluster.start_again(departed if _PRIMARY in statuses else self._cluster.nodes)

    def _statuses(self) -> list[str]:
        """Return the status of each node; nothing if one does not respond, since it may be in a primary view."""
        try:
            return [node.status("cluster_status") for node in self._nodes]
        except sa.exc.OperationalError:
            return []


class Cluster:
    """A cluster of several nodes, connected by ``network``."""

    def __init__(self, nodes: int) -> None:
        """Prepare the cluster; raise Missing if a program is not installed."""
        self.network = Network(nodes)
        first, *other_hosts = self.network.hosts
        self.nodes = [Node(first)]
        self.nodes += [Node(host, self.nodes[0].password) for host in other_hosts]

    def start(self) -> None:
        """Start the cluster; return once all nodes are synced."""
        first, *other_nodes = self.nodes
        first.start()
        first.stop()
        for node in other_nodes:
            first.copy_to(node)
        self.begin(first)
        self.join(other_nodes)

    def begin(self, node: Node) -> None:
        """Bootstrap the cluster with a node, while none runs."""
        node.neighbours = []
        node.start()
        self._connect(node)

    def join(self, nodes: Sequence[Node]) -> None:
        """Start these nodes, while others run; return once they are synced."""
        operator = _Operator([node for node in self.nodes if node not in nodes])
        for node in nodes:
            self._connect(node)
        with ThreadPoolExecutor(len(nodes)) as threads:
            starts = [threads.submit(node.start) for node in nodes]
            while wait(starts, timeout=_INTERVAL).not_done:
                operator.look()
        for start in starts:
            start.result()

    def wait_until_complete(self) -> None:
        """Return once all nodes are synced with each other."""
        operator = _Operator(self.nodes, self)
        deadline = time.monotonic() + children.PATIENCE
        while not all(node.is_synced_with(len(self.nodes)) for node in self.nodes):
            assert time.monotonic() < deadline, "the nodes do not become one group"
            operator.look()
            time.sleep(_INTERVAL / 10)

    def start_again(self, nodes: Sequence[Node]) -> None:
        """Kill these nodes and start them again; they join the others, if any."""
        for node in nodes:
            node.kill()
        if len(nodes) < len(self.nodes):
            self.join(nodes)
        else:
            self.begin_again()

    def begin_again(self) -> None:
        """Start all nodes after all of them have stopped, the one with the last transaction first."""
        first, *other_nodes = sorted(self.nodes, key=lambda node: -int(node.recovered_position().rpartition(":")[2]))
        first.allow_beginning()
        self.begin(first)
        self.join(other_nodes)

    def _connect(self, node: Node) -> None:
        """Make the node join the others when it starts."""
        node.neighbours = [other for other in self.nodes if other is not node]

    def stop(self) -> None:
        """Kill the nodes, and remove everything: a node that has lost the others may take long to shut down."""
        for node in self.nodes:
            with contextlib.suppress(AttributeError):  # it was never started
                node.kill()
            shutil.rmtree(node.directory, ignore_errors=True)
        self.network.close()


@contextlib.contextmanager
def cluster(nodes: int) -> Iterator[Cluster]:
    """Provide a cluster exclusive to the caller; raise Missing if a program is not installed."""
    Node.check_installed()
    new_cluster = Cluster(nodes)
    try:
        new_cluster.start()
        yield new_cluster
    finally:
        new_cluster.stop()
