"""Workers, services and database servers that are killed, paused and restarted."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Iterator
from typing import Any

from jepsen.clusters.cluster import Cluster
from jepsen.clusters.galera import Galera
from jepsen.nemeses.nemesis import Nemesis
from tests import children
from tests.running import Service


class _ServiceNemesis(Nemesis):
    """Base class of harm to one service."""

    kills = "worker"

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.services)

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        number = rng.randrange(len(cluster.services))
        with self._harm(cluster.services[number], rng) as detail:
            yield {"service": number, **detail}

    def _harm(self, service: Service, rng: random.Random) -> contextlib.AbstractContextManager[dict[str, Any]]:
        raise NotImplementedError


class KillWorker(_ServiceNemesis):
    """A SIGKILL of a worker; its master starts another."""

    name = "kill-worker"
    seconds = 0.5

    @contextlib.contextmanager
    def _harm(self, service: Service, rng: random.Random) -> Iterator[dict[str, Any]]:
        worker = _worker(service, rng)
        children.send(worker, signal.SIGKILL)
        yield {"worker": worker}


class PauseWorker(_ServiceNemesis):
    """A SIGSTOP of a worker, which may hold locks in the database and uWSGI's lock around accept()."""

    name = "pause-worker"
    pauses = True
    seconds = 3.0

    @contextlib.contextmanager
    def _harm(self, service: Service, rng: random.Random) -> Iterator[dict[str, Any]]:
        worker = _worker(service, rng)
        children.send(worker, signal.SIGSTOP)
        try:
            yield {"worker": worker}
        finally:
            children.send(worker, signal.SIGCONT)


def _worker(service: Service, rng: random.Random) -> int:
    while not (workers := service.workers):
        time.sleep(0.01)
    return rng.choice(workers)


class KillService(_ServiceNemesis):
    """A SIGKILL of all processes of a service, which is started again at the end."""

    name = "kill-service"

    @contextlib.contextmanager
    def _harm(self, service: Service, rng: random.Random) -> Iterator[dict[str, Any]]:
        service.kill()
        try:
            yield {}
        finally:
            service.start()


class ReloadService(_ServiceNemesis):
    """A reload of a service, which replaces its workers one after another without losing requests."""

    name = "reload-service"
    loses = "none"
    seconds = 0.0

    def applies_to(self, cluster: Cluster) -> bool:
        # Another implementation may lack uWSGI's command file.
        return super().applies_to(cluster) and cluster.shows_state

    @contextlib.contextmanager
    def _harm(self, service: Service, rng: random.Random) -> Iterator[dict[str, Any]]:
        service.reload()
        yield {}


class _DatabaseNemesis(Nemesis):
    """Base class of harm to the server that the services write to; Galera nodes have their own nemeses."""

    kills = "database"

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.servers) and not isinstance(cluster, Galera)


class KillDatabase(_DatabaseNemesis):
    """A SIGKILL of all processes of the server, which is started again at the end; every commit survives."""

    name = "kill-database"

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        cluster.servers[0].kill()
        try:
            yield {}
        finally:
            cluster.servers[0].start()


class PauseDatabase(_DatabaseNemesis):
    """A SIGSTOP of all processes of the server, whose kernel still acknowledges packets."""

    name = "pause-database"
    pauses = True
    seconds = 3.0

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        with cluster.servers[0].frozen():
            yield {}


class RestartDatabase(_DatabaseNemesis):
    """A clean shutdown and restart of the server."""

    name = "restart-database"
    seconds = 0.5

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        cluster.servers[0].stop()
        try:
            yield {}
        finally:
            cluster.servers[0].start()
