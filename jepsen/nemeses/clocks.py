"""Clocks jump by hours, forward or backward, and back: those of a service, or that of the database."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

from jepsen.clusters.cluster import Cluster
from jepsen.nemeses.nemesis import Nemesis
from tests import children, faketime
from tests.running import Service
from tests.servers import ServerProcess

_HOUR = 3600


class _Jump(Nemesis):
    """The process is restarted with a clock that can be set, which then jumps; at the end it is restarted again."""

    seconds = 3.0

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, chance: random.Random) -> Iterator[dict[str, Any]]:
        process, detail = self._choose(cluster, chance)
        clock = faketime.Clock(children.run_directory() / f"clock-{chance.getrandbits(32):x}")
        hours = chance.choice((-1, 1)) * chance.randint(1, 48)
        before = dict(process.environment)
        process.environment.update(clock.environment())
        try:
            process.restart()
            clock.set(hours * _HOUR)
            yield {"hours": hours, **detail}
            clock.set(0)
        finally:
            process.environment = before
            process.restart()

    def _choose(self, cluster: Cluster, chance: random.Random) -> tuple[Service | ServerProcess, dict[str, Any]]:
        raise NotImplementedError


class ServiceClock(_Jump):
    """The clock of one service jumps; that of the database, which decides on leases, does not but for SQLite."""

    name = "service-clock"
    kills = "worker"

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.services)

    def _choose(self, cluster: Cluster, chance: random.Random) -> tuple[Service, dict[str, Any]]:
        number = chance.randrange(len(cluster.services))
        return cluster.services[number], {"service": number}


class DatabaseClock(_Jump):
    """The clock of the server that is written to jumps."""

    name = "database-clock"
    kills = "database"

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.servers)

    def _choose(self, cluster: Cluster, chance: random.Random) -> tuple[ServerProcess, dict[str, Any]]:
        return cluster.servers[0], {}
