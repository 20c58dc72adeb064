"""Hosts of the service come and go, in order or not, and are upgraded one after the other.

What is done in order loses no request: a host is stopped when it has answered all that it was given.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jepsen.clusters import older_version
from jepsen.clusters.cluster import Cluster
from jepsen.clusters.hosts import Hosts, named
from jepsen.nemeses.nemesis import Nemesis
from tests import children
from tests.running import ROOT


class _OfHosts(Nemesis):
    seconds = 0.0

    def applies_to(self, cluster: Cluster) -> bool:
        return isinstance(cluster, Hosts) and cluster.tree is None


class RollingRestart(_OfHosts):
    """One host after the other is drained, stopped, started and put back."""

    name = "restart-hosts"
    loses = "none"

    @contextlib.contextmanager
    def harm(self, cluster: Hosts, chance: random.Random) -> Iterator[dict[str, Any]]:
        for number in range(len(cluster.services)):
            cluster.drain(number)
            cluster.put_back(number)
        yield {}


class MoreAndFewer(_OfHosts):
    """A host is added for a time, then drained and removed."""

    name = "add-and-remove-host"
    loses = "none"
    seconds = 1.0

    @contextlib.contextmanager
    def harm(self, cluster: Hosts, chance: random.Random) -> Iterator[dict[str, Any]]:
        cluster.add()
        yield {}
        cluster.remove()


class KilledHost(_OfHosts):
    """All processes of a host are killed; requests that it had are lost, others go to another host."""

    name = "kill-host"
    kills = "worker"
    loses = "in flight"

    @contextlib.contextmanager
    def harm(self, cluster: Hosts, chance: random.Random) -> Iterator[dict[str, Any]]:
        number = chance.randrange(len(cluster.services))
        cluster.services[number].kill()
        yield {"host": number}
        cluster.haproxy.wait_for(named(number), "DOWN")
        cluster.put_back(number)


class RollingUpgrade(_OfHosts):
    """``placement-manage db sync`` beside the older services, then host after host gets this version; one goes back."""

    name = "upgrade-hosts"
    loses = "none"
    seconds = 2.0

    def applies_to(self, cluster: Cluster) -> bool:
        return isinstance(cluster, Hosts) and cluster.tree is not None

    @contextlib.contextmanager
    def harm(self, cluster: Hosts, chance: random.Random) -> Iterator[dict[str, Any]]:
        environment = {
            **os.environ,
            "OS_PLACEMENT_CONFIG_DIR": str(cluster.services[0].directory),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "placement.cmd.manage", "db", "sync"]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        present = (None, "jepsen.application")
        for number in range(len(cluster.services)):
            _replace(cluster, number, *present)  # both versions serve meanwhile
        # And here, too, the older one on a schema that is newer than it from its start on.
        _replace(cluster, 0, cluster.tree, cluster.module)
        begun = cluster.haproxy.succeeded(named(0))
        children.until(lambda: cluster.haproxy.succeeded(named(0)) > begun, "the older version has no requests")
        yield {"tree": str(older_version.served(cluster.services[0].url))}
        _replace(cluster, 0, *present)


def _replace(cluster: Hosts, number: int, tree: Path | None, module: str) -> None:
    """Have a host serve the version in another directory, drained first."""
    cluster.drain(number)
    older = cluster.tree, cluster.module
    cluster.tree, cluster.module = tree, module
    cluster.put_back(number)
    cluster.tree, cluster.module = older
