"""Galera nodes that are killed, paused, partitioned and restarted, and the haproxy in front of them."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from jepsen.clusters.cluster import Cluster
from jepsen.clusters.galera import Galera
from jepsen.history import AFTERMATH
from jepsen.nemeses.nemesis import Nemesis
from tests.galera_network import EXPULSION, Node
from tests.namespaces import CLIENTS, GROUP


class GaleraNemesis(Nemesis):
    """Base class of harm to a Galera cluster, which is complete again at its end."""

    aftermath = 0.0

    def applies_to(self, cluster: Cluster) -> bool:
        return isinstance(cluster, Galera)

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        assert isinstance(cluster, Galera)
        with self._harm(cluster, rng) as detail:
            yield detail
        cluster.wait_until_complete()

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, rng: random.Random) -> Iterator[dict[str, Any]]:
        raise NotImplementedError
        yield {}


class NodeNemesis(GaleraNemesis):
    """Base class of harm to one node: the one that is written to or, with equal probability, another."""

    kills = "node"
    seconds = 8.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, rng: random.Random) -> Iterator[dict[str, Any]]:
        written = cluster.written
        others = [node for node in cluster.nodes.nodes if node is not written]
        node = rng.choice([written, rng.choice(others)])
        with self._harm_node(cluster, node, rng):
            yield {"node": node.name, "written": node is written}

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, rng: random.Random) -> Iterator[None]:
        raise NotImplementedError
        yield


class KillNode(NodeNemesis):
    name = "kill-node"

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, rng: random.Random) -> Iterator[None]:
        node.kill()
        try:
            yield
        finally:
            cluster.nodes.join([node])


class PauseNode(NodeNemesis):
    """SIGSTOP a node, which is expelled, and finds itself outside the group when it continues."""

    name = "pause-node"

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, rng: random.Random) -> Iterator[None]:
        with node.frozen():
            yield


class PauseNodeBriefly(PauseNode):
    """Pause a node for about the time until the others expel it, so that it may continue before it notices."""

    name = "pause-node-briefly"
    seconds = 0.0

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, rng: random.Random) -> Iterator[None]:
        with node.frozen():
            time.sleep(rng.uniform(1.0, 6.0))
        time.sleep(EXPULSION)  # until then the others may expel it, although all report that they are synced
        yield


class PartitionNode(NodeNemesis):
    """Separate a node from the other nodes, but not from the services and haproxy."""

    name = "partition-node"
    networks: ClassVar[Sequence[str]] = (GROUP,)

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, rng: random.Random) -> Iterator[None]:
        with cluster.nodes.network.cut([node.host], self.networks):
            yield


class IsolateNode(PartitionNode):
    """Separate a node from the other nodes, the services and haproxy."""

    name = "isolate-node"
    networks = (CLIENTS, GROUP)


class KillAllNodes(GaleraNemesis):
    """Kill all nodes at once; the most advanced one bootstraps a new group, and the others join it."""

    name = "kill-all-nodes"
    kills = "database"
    seconds = 0.5

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, rng: random.Random) -> Iterator[dict[str, Any]]:
        for node in cluster.nodes.nodes:
            node.kill()
        try:
            yield {}
        finally:
            cluster.nodes.begin_again()


class RestartNodes(GaleraNemesis):
    """Restart each node in turn, once the one before is synced, as for an upgrade."""

    name = "restart-nodes"
    kills = "node"
    seconds = 0.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, rng: random.Random) -> Iterator[dict[str, Any]]:
        for node in cluster.nodes.nodes:
            cluster.wait_until_complete()
            node.stop()
            cluster.nodes.join([node])
        yield {}


class RestartBalancer(GaleraNemesis):
    """Kill haproxy with all connections, and start it again."""

    name = "restart-haproxy"
    kills = "node"
    seconds = 0.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, rng: random.Random) -> Iterator[dict[str, Any]]:
        cluster.balancer.restart()
        yield {}


class ReloadBalancer(GaleraNemesis):
    """Replace haproxy by another process; the old one ends its connections some seconds later."""

    name = "reload-haproxy"
    kills = "node"
    aftermath = AFTERMATH
    seconds = 0.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, rng: random.Random) -> Iterator[dict[str, Any]]:
        cluster.balancer.reload()
        yield {}
