"""Jumps of the clock of a service or the database, by hours, forward or backward, and back."""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Iterator
from typing import Any

from jepsen.clusters.cluster import Cluster
from jepsen.nemeses.nemesis import Nemesis
from tests import children, faketime
from tests.running import Service
from tests.servers import ServerProcess

_HOUR = 3600


class _ClockJump(Nemesis):
    """Base class of clock jumps; the process is restarted before one, with a clock that can jump, and at the end."""

    seconds = 3.0

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        process, detail = self._choose(cluster, rng)
        # Concurrent runs of tests share the directory, and may have equal random numbers.
        clock = faketime.Clock(children.run_directory() / f"clock-{secrets.token_hex(8)}")
        hours = rng.choice((-1, 1)) * rng.randint(1, 48)
        environment = dict(process.environment)
        process.environment.update(clock.environment())
        try:
            process.restart()
            clock.set(hours * _HOUR)
            yield {"hours": hours, **detail}
            clock.set(0)
        finally:
            process.environment = environment
            process.restart()

    def _choose(self, cluster: Cluster, rng: random.Random) -> tuple[Service | ServerProcess, dict[str, Any]]:
        raise NotImplementedError


class ServiceClock(_ClockJump):
    """A jump of a service's clock; leases depend on the database's clock, which jumps only with SQLite."""

    name = "service-clock"
    kills = "worker"

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.services)

    def _choose(self, cluster: Cluster, rng: random.Random) -> tuple[Service, dict[str, Any]]:
        number = rng.randrange(len(cluster.services))
        return cluster.services[number], {"service": number}


class DatabaseClock(_ClockJump):
    """A jump of the clock of the server that the services write to."""

    name = "database-clock"
    kills = "database"

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.servers)

    def _choose(self, cluster: Cluster, rng: random.Random) -> tuple[ServerProcess, dict[str, Any]]:
        return cluster.servers[0], {}
