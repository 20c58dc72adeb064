"""The connections between a service and its database fail: proxies reset, delay, drop and cut what they forward."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any, ClassVar

from jepsen.clusters.cluster import Cluster
from jepsen.nemeses.nemesis import Nemesis
from tests import proxy_faults
from tests.proxies import Proxy

#: The probability that a transaction is cut at its COMMIT.
_CUT = 0.25
#: Seconds by which a packet is late, at least and at most.
_LATE = (0.1, 0.3)


class _OfProxy(Nemesis):
    """Harm to all connections of one service; without proxies there is none."""

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.proxies)

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, chance: random.Random) -> Iterator[dict[str, Any]]:
        name = chance.choice([*cluster.proxies])
        with self._harm(cluster.proxies[name], chance) as detail:
            detail["proxy"] = name
            yield detail

    def _harm(self, proxy: Proxy, chance: random.Random) -> contextlib.AbstractContextManager[dict[str, Any]]:
        raise NotImplementedError


class ResetConnections(_OfProxy):
    """Connections are reset (RST), new ones too."""

    name = "reset-connections"
    seconds = 0.5

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, chance: random.Random) -> Iterator[dict[str, Any]]:
        with proxy.behaving(proxy_faults.Resets()):
            yield {}


class RefuseConnections(_OfProxy):
    """New connections are refused; every other one of those that there are is reset, and the others go on."""

    name = "refuse-connections"

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, chance: random.Random) -> Iterator[dict[str, Any]]:
        with proxy.refusing(), proxy.behaving(proxy_faults.Resets(lambda: chance.random() < 0.5)):
            yield {}


class DelayPackets(_OfProxy):
    """Every packet is late, in both directions, by times that differ."""

    name = "delay-packets"
    seconds = 3.0

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, chance: random.Random) -> Iterator[dict[str, Any]]:
        with proxy.behaving(proxy_faults.Delays(lambda: chance.uniform(*_LATE))):
            yield {}


class DropPackets(_OfProxy):
    """All data are lost, while connections stay open; each ends only by the timeouts of the service."""

    name = "drop-packets"
    aftermath = 40.0  # [placement_database]read_timeout, and a request that began before its end

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, chance: random.Random) -> Iterator[dict[str, Any]]:
        with proxy.silent():
            yield {}


class _CutCommits(_OfProxy):
    """Some connections that send a COMMIT are reset."""

    seconds = 3.0
    #: Whether the server has the COMMIT.
    forwards: ClassVar[bool]

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, chance: random.Random) -> Iterator[dict[str, Any]]:
        cuts = proxy_faults.CutsAtCommit(lambda: chance.random() < _CUT, forwards=self.forwards)
        detail: dict[str, Any] = {}
        with proxy.behaving(cuts):
            yield detail
        detail["cut"] = cuts.cut


class CutAfterCommit(_CutCommits):
    """The transaction is committed, and its client never has the answer."""

    name = "cut-after-commit"
    forwards = True


class CutBeforeCommit(_CutCommits):
    """The server never has the COMMIT, and its client has no answer."""

    name = "cut-before-commit"
    forwards = False
