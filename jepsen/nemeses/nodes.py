"""Nodes of a Galera cluster that are killed, paused, cut off and restarted, and haproxy before them."""

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


class OfGalera(Nemesis):
    """The form of all: what they do to a cluster of Galera, which is complete again once it is over."""

    aftermath = 0.0

    def applies_to(self, cluster: Cluster) -> bool:
        return isinstance(cluster, Galera)

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, chance: random.Random) -> Iterator[dict[str, Any]]:
        assert isinstance(cluster, Galera)
        with self._harm(cluster, chance) as detail:
            yield detail
        cluster.wait_until_complete()

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, chance: random.Random) -> Iterator[dict[str, Any]]:
        raise NotImplementedError
        yield {}


class OfOneNode(OfGalera):
    """Harm to one node: the one that is written to, or as often one of the others."""

    kills = "node"
    seconds = 8.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, chance: random.Random) -> Iterator[dict[str, Any]]:
        written = cluster.written
        others = [node for node in cluster.nodes.nodes if node is not written]
        node = chance.choice([written, chance.choice(others)])
        with self._harm_node(cluster, node, chance):
            yield {"node": node.name, "written": node is written}

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, chance: random.Random) -> Iterator[None]:
        raise NotImplementedError
        yield


class KillNode(OfOneNode):
    name = "kill-node"

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, chance: random.Random) -> Iterator[None]:
        node.kill()
        try:
            yield
        finally:
            cluster.nodes.join([node])


class PauseNode(OfOneNode):
    """SIGSTOP; the node is expelled, and finds itself outside of the group when it goes on."""

    name = "pause-node"

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, chance: random.Random) -> Iterator[None]:
        with node.frozen():
            yield


class PauseNodeBriefly(PauseNode):
    """For about the time after which the others expel it: it may go on before it knows of that."""

    name = "pause-node-briefly"
    seconds = 0.0

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, chance: random.Random) -> Iterator[None]:
        with node.frozen():
            time.sleep(chance.uniform(1.0, 6.0))
        time.sleep(EXPULSION)  # until then the others may expel it, although all of them call themselves synced
        yield


class PartitionNode(OfOneNode):
    """The other nodes do not reach it; the services and haproxy do."""

    name = "partition-node"
    networks: ClassVar[Sequence[str]] = (GROUP,)

    @contextlib.contextmanager
    def _harm_node(self, cluster: Galera, node: Node, chance: random.Random) -> Iterator[None]:
        with cluster.nodes.network.cut([node.host], self.networks):
            yield


class IsolateNode(PartitionNode):
    """Neither the other nodes nor the services and haproxy reach it."""

    name = "isolate-node"
    networks = (CLIENTS, GROUP)


class KillAllNodes(OfGalera):
    """All nodes at once; the one with the last transaction begins a new group, and the others join it."""

    name = "kill-all-nodes"
    kills = "database"
    seconds = 0.5

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, chance: random.Random) -> Iterator[dict[str, Any]]:
        for node in cluster.nodes.nodes:
            node.kill()
        try:
            yield {}
        finally:
            cluster.nodes.begin_again()


class RestartNodes(OfGalera):
    """Each node in turn is stopped in order and started, once the one before is synced, as for an upgrade."""

    name = "restart-nodes"
    kills = "node"
    seconds = 0.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, chance: random.Random) -> Iterator[dict[str, Any]]:
        for node in cluster.nodes.nodes:
            cluster.wait_until_complete()
            node.stop()
            cluster.nodes.join([node])
        yield {}


class RestartBalancer(OfGalera):
    """haproxy ends with all connections, and is started again."""

    name = "restart-haproxy"
    kills = "node"
    seconds = 0.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, chance: random.Random) -> Iterator[dict[str, Any]]:
        cluster.balancer.restart()
        yield {}


class ReloadBalancer(OfGalera):
    """haproxy is replaced by another process; the old one ends its connections some seconds later."""

    name = "reload-haproxy"
    kills = "node"
    aftermath = AFTERMATH
    seconds = 0.0

    @contextlib.contextmanager
    def _harm(self, cluster: Galera, chance: random.Random) -> Iterator[dict[str, Any]]:
        cluster.balancer.reload()
        yield {}
