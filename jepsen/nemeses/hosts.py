"""Hosts of the service that are added, removed, restarted, killed and upgraded.

Orderly changes lose no request: a host is stopped once it has responded to all its requests.
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
from jepsen.clusters.hosts import Hosts, server_name
from jepsen.nemeses.nemesis import Nemesis
from tests import children
from tests.running import ROOT


class _HostNemesis(Nemesis):
    """Base class of changes of hosts that all run this version."""

    seconds = 0.0

    def applies_to(self, cluster: Cluster) -> bool:
        return isinstance(cluster, Hosts) and cluster.tree is None


class RollingRestart(_HostNemesis):
    """A restart of each host in turn, once it is drained."""

    name = "restart-hosts"
    loses = "none"

    @contextlib.contextmanager
    def harm(self, cluster: Hosts, rng: random.Random) -> Iterator[dict[str, Any]]:
        for number in range(len(cluster.services)):
            cluster.drain(number)
            cluster.put_back(number)
        yield {}


class AddAndRemoveHost(_HostNemesis):
    """An additional host, drained and removed after some time."""

    name = "add-and-remove-host"
    loses = "none"
    seconds = 1.0

    @contextlib.contextmanager
    def harm(self, cluster: Hosts, rng: random.Random) -> Iterator[dict[str, Any]]:
        cluster.add()
        yield {}
        cluster.remove()


class KilledHost(_HostNemesis):
    """A kill of all processes of a host: its requests in flight are lost, and new ones go to another host."""

    name = "kill-host"
    kills = "worker"
    loses = "in flight"

    @contextlib.contextmanager
    def harm(self, cluster: Hosts, rng: random.Random) -> Iterator[dict[str, Any]]:
        number = rng.randrange(len(cluster.services))
        cluster.services[number].kill()
        yield {"host": number}
        cluster.haproxy.wait_for(server_name(number), "DOWN")
        cluster.put_back(number)


class RollingUpgrade(_HostNemesis):
    """``placement-manage db sync`` under running older services, an upgrade of each host in turn, and one reversal."""

    name = "upgrade-hosts"
    loses = "none"
    seconds = 2.0

    def applies_to(self, cluster: Cluster) -> bool:
        return isinstance(cluster, Hosts) and cluster.tree is not None

    @contextlib.contextmanager
    def harm(self, cluster: Hosts, rng: random.Random) -> Iterator[dict[str, Any]]:
        environment = {
            **os.environ,
            "OS_PLACEMENT_CONFIG_DIR": str(cluster.services[0].directory),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "placement.cmd.manage", "db", "sync"]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        this_version = (None, "jepsen.application")
        for number in range(len(cluster.services)):
            _replace(cluster, number, *this_version)  # both versions serve in between
        # Also start the older version on the newer schema.
        _replace(cluster, 0, cluster.tree, cluster.module)
        successes = cluster.haproxy.successes(server_name(0))
        children.until(
            lambda: cluster.haproxy.successes(server_name(0)) > successes, "the older version gets no requests"
        )
        yield {"tree": str(older_version.directory_of_service(cluster.services[0].url))}
        _replace(cluster, 0, *this_version)


def _replace(cluster: Hosts, number: int, tree: Path | None, module: str) -> None:
    """Drain a host, and run the version in another directory on it."""
    cluster.drain(number)
    previous = cluster.tree, cluster.module
    cluster.tree, cluster.module = tree, module
    cluster.put_back(number)
    cluster.tree, cluster.module = previous
