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
    """Base class of harm to a Galera cluster, which ends once all nodes are synced again."""

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
    """Base class of harm to one node: the one with the connections or, with equal probability, another."""

    kills = "node"
    seconds = 8.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, rng: random.Random) -> Iterator[dict[str, Any]]:
        busiest = cluster.busiest_node
        others = [node for node in cluster.nodes.nodes if node is not busiest]
        node = rng.choice([busiest, rng.choice(others)])
        with self._harm_node(cluster, node, rng):
            yield {"node": node.name, "written": node is busiest}

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
    """A SIGSTOP of a node until the others expel it."""

    name = "pause-node"

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, rng: random.Random) -> Iterator[None]:
        with node.frozen():
            yield


class PauseNodeBriefly(PauseNode):
    """A SIGSTOP of a node for about the time until the others expel it, so that it may continue before or after."""

    name = "pause-node-briefly"
    seconds = 0.0

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, rng: random.Random) -> Iterator[None]:
        with node.frozen():
            time.sleep(rng.uniform(1.0, 6.0))
        time.sleep(EXPULSION)  # until then the others may expel it, although all report that they are synced
        yield


class PartitionNode(NodeNemesis):
    """A partition between a node and the other nodes, but not between it and the services and haproxy."""

    name = "partition-node"
    networks: ClassVar[Sequence[str]] = (GROUP,)

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, rng: random.Random) -> Iterator[None]:
        with cluster.nodes.network.cut([node.host], self.networks):
            yield


class IsolateNode(PartitionNode):
    """A partition between a node and the other nodes, the services and haproxy."""

    name = "isolate-node"
    networks = (CLIENTS, GROUP)


class KillAllNodes(GaleraNemesis):
    """A kill of all nodes at once; the most advanced one bootstraps a new group, and the others join it."""

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
    """A restart of each node in turn, once the previous one is synced, as for an upgrade."""

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
    """A kill of haproxy with all its connections, and a restart."""

    name = "restart-haproxy"
    kills = "node"
    seconds = 0.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, rng: random.Random) -> Iterator[dict[str, Any]]:
        cluster.balancer.restart()
        yield {}


class ReloadBalancer(GaleraNemesis):
    """A replacement of haproxy by another process; the old one ends its connections some seconds later."""

    name = "reload-haproxy"
    kills = "node"
    aftermath = AFTERMATH
    seconds = 0.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, rng: random.Random) -> Iterator[dict[str, Any]]:
        cluster.balancer.reload()
        yield {}
