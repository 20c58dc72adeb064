"""Failures of the connections between a service and its database: resets, delays, drops and cuts in a proxy."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any, ClassVar

from jepsen.clusters.cluster import Cluster
from jepsen.nemeses.nemesis import Nemesis
from tests import proxy_faults
from tests.proxies import Proxy

#: Probability that a transaction is cut at its COMMIT.
_CUT_PROBABILITY = 0.25
#: Delay of a packet in seconds, minimum and maximum.
_DELAYS = (0.1, 0.3)


class _ProxyNemesis(Nemesis):
    """Base class of harm to all connections of one service."""

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.proxies)

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        name = rng.choice([*cluster.proxies])
        with self._harm(cluster.proxies[name], rng) as detail:
            detail["proxy"] = name
            yield detail

    def _harm(self, proxy: Proxy, rng: random.Random) -> contextlib.AbstractContextManager[dict[str, Any]]:
        raise NotImplementedError


class ResetConnections(_ProxyNemesis):
    """Resets (RST) of all connections, including new ones."""

    name = "reset-connections"
    seconds = 0.5

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, rng: random.Random) -> Iterator[dict[str, Any]]:
        with proxy.behaving(proxy_faults.Resets()):
            yield {}


class RefuseConnections(_ProxyNemesis):
    """Refusals of new connections, and resets of about half of the open ones."""

    name = "refuse-connections"

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, rng: random.Random) -> Iterator[dict[str, Any]]:
        with proxy.refusing(), proxy.behaving(proxy_faults.Resets(lambda: rng.random() < 0.5)):
            yield {}


class DelayPackets(_ProxyNemesis):
    """Varying delays of every packet in both directions."""

    name = "delay-packets"
    seconds = 3.0

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, rng: random.Random) -> Iterator[dict[str, Any]]:
        with proxy.behaving(proxy_faults.Delays(lambda: rng.uniform(*_DELAYS))):
            yield {}


class DropPackets(_ProxyNemesis):
    """Loss of all data on open connections, until the service's timeouts end them."""

    name = "drop-packets"
    aftermath = 40.0  # [placement_database]read_timeout, plus a request that began before its end

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, rng: random.Random) -> Iterator[dict[str, Any]]:
        with proxy.silent():
            yield {}


class _CutCommits(_ProxyNemesis):
    """Base class of resets of some connections that send a COMMIT."""

    seconds = 3.0
    #: Whether the server receives the COMMIT.
    forwards: ClassVar[bool]

    @contextlib.contextmanager
    def _harm(self, proxy: Proxy, rng: random.Random) -> Iterator[dict[str, Any]]:
        cuts = proxy_faults.CutsAtCommit(lambda: rng.random() < _CUT_PROBABILITY, forwards=self.forwards)
        detail: dict[str, Any] = {}
        with proxy.behaving(cuts):
            yield detail
        detail["cut"] = cuts.cut


class CutAfterCommit(_CutCommits):
    """A reset after the COMMIT, whose response the service does not get."""

    name = "cut-after-commit"
    forwards = True


class CutBeforeCommit(_CutCommits):
    """A reset before the COMMIT, which the server does not get."""

    name = "cut-before-commit"
    forwards = False
