"""Role changes of a primary and its replica; each harm exchanges the roles once more.

The replica takes writes only after the old primary has stopped taking them, and the old primary comes back as a replica
of the new one.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from typing import Any, ClassVar

from jepsen.clusters.cluster import Cluster
from jepsen.clusters.pairs import Pair
from jepsen.nemeses.nemesis import Nemesis

#: Seconds for which the replica receives nothing before the primary is killed; the commits of this time are lost.
LAG = 0.3


class _RoleChange(Nemesis):
    """Base class of role changes, which end once haproxy sends connections to the new primary."""

    kills = "database"
    seconds: ClassVar[float] = 0.7
    aftermath = 0.0

    def applies_to(self, cluster: Cluster) -> bool:
        return isinstance(cluster, Pair)


class Switchover(_RoleChange):
    """A planned role change: the old primary refuses writes and ends its sessions, and the replica catches up first."""

    name = "switch-over"

    @contextlib.contextmanager
    def harm(self, cluster: Pair, rng: random.Random) -> Iterator[dict[str, Any]]:
        old, new = cluster.servers
        old.demote()
        cluster.router.wait_for(old, "DOWN")
        new.wait_for(old)
        _promote(cluster)
        yield {"primary": new.port}
        old.follow(new, cluster.link.port)


class UnfencedSwitchover(_RoleChange):
    """A role change that leaves sessions on the old primary open, where reads are stale until it comes back.

    A session is abandoned at its first write; or, if it only reads, after ``freshness.CHECK_INTERVAL``.
    """

    name = "switch-over-unfenced"
    shows_past = True

    @contextlib.contextmanager
    def harm(self, cluster: Pair, rng: random.Random) -> Iterator[dict[str, Any]]:
        old, new = cluster.servers
        cluster.router.keep_open_sessions(old)
        old.demote()
        new.wait_for(old)
        _promote(cluster)
        yield {"primary": new.port}
        cluster.router.end_open_sessions(old)
        old.follow(new, cluster.link.port)


class Failover(_RoleChange):
    """An unplanned role change: the replica stops receiving, and is promoted after the primary is killed."""

    name = "fail-over"
    loses_tail = True

    def applies_to(self, cluster: Cluster) -> bool:
        return isinstance(cluster, Pair) and not cluster.waits_for_replica

    @contextlib.contextmanager
    def harm(self, cluster: Pair, rng: random.Random) -> Iterator[dict[str, Any]]:
        old, new = cluster.servers
        with cluster.link.silent():
            time.sleep(LAG)
            old.kill()
        _promote(cluster)
        yield {"primary": new.port}
        old.follow(new, cluster.link.port)


class FailoverWithoutLoss(Failover):
    """A failover with synchronous replication, which keeps all acknowledged writes."""

    name = "fail-over-synchronous"
    loses_tail = False

    def applies_to(self, cluster: Cluster) -> bool:
        return isinstance(cluster, Pair) and cluster.waits_for_replica


def _promote(cluster: Pair) -> None:
    old, new = cluster.servers
    new.promote()
    cluster.link.target = new.port
    cluster.servers[:] = [new, old]
    cluster.router.wait_for(new, "UP")
