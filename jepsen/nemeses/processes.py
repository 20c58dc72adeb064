"""Processes are killed, stopped and restarted: workers, services, and the server of the database."""

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


class _OfServices(Nemesis):
    """Harm to one of the services."""

    kills = "worker"

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.services)

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, chance: random.Random) -> Iterator[dict[str, Any]]:
        number = chance.randrange(len(cluster.services))
        with self._harm(cluster.services[number], chance) as detail:
            yield {"service": number, **detail}

    def _harm(self, service: Service, chance: random.Random) -> contextlib.AbstractContextManager[dict[str, Any]]:
        raise NotImplementedError


class KillWorker(_OfServices):
    """SIGKILL of one worker; its master starts another."""

    name = "kill-worker"
    seconds = 0.5

    @contextlib.contextmanager
    def _harm(self, service: Service, chance: random.Random) -> Iterator[dict[str, Any]]:
        worker = _worker(service, chance)
        children.send(worker, signal.SIGKILL)
        yield {"worker": worker}


class PauseWorker(_OfServices):
    """SIGSTOP of one worker, which may hold locks in the database, and uWSGI's lock around accept()."""

    name = "pause-worker"
    pauses = True
    seconds = 3.0

    @contextlib.contextmanager
    def _harm(self, service: Service, chance: random.Random) -> Iterator[dict[str, Any]]:
        worker = _worker(service, chance)
        children.send(worker, signal.SIGSTOP)
        try:
            yield {"worker": worker}
        finally:
            children.send(worker, signal.SIGCONT)


def _worker(service: Service, chance: random.Random) -> int:
    while not (workers := service.workers):
        time.sleep(0.01)
    return chance.choice(workers)


class KillService(_OfServices):
    """SIGKILL of all processes of a service, which is started again at the end."""

    name = "kill-service"

    @contextlib.contextmanager
    def _harm(self, service: Service, chance: random.Random) -> Iterator[dict[str, Any]]:
        service.kill()
        try:
            yield {}
        finally:
            service.start()


class ReloadService(_OfServices):
    """The workers of a service are replaced, one after another; no request is lost."""

    name = "reload-service"
    loses = "none"
    seconds = 0.0

    def applies_to(self, cluster: Cluster) -> bool:
        # Another implementation need not have uWSGI's file for orders.
        return super().applies_to(cluster) and cluster.shows_state

    @contextlib.contextmanager
    def _harm(self, service: Service, chance: random.Random) -> Iterator[dict[str, Any]]:
        service.reload()
        yield {}


class _OfDatabase(Nemesis):
    """Harm to the server that is written to; nodes of Galera have nemeses of their own."""

    kills = "database"

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.servers) and not isinstance(cluster, Galera)


class KillDatabase(_OfDatabase):
    """SIGKILL of all processes of the server, which is started again at the end; every COMMIT survives."""

    name = "kill-database"

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, chance: random.Random) -> Iterator[dict[str, Any]]:
        cluster.servers[0].kill()
        try:
            yield {}
        finally:
            cluster.servers[0].start()


class PauseDatabase(_OfDatabase):
    """SIGSTOP of all processes of the server; its kernel still acknowledges packets."""

    name = "pause-database"
    pauses = True
    seconds = 3.0

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, chance: random.Random) -> Iterator[dict[str, Any]]:
        with cluster.servers[0].frozen():
            yield {}


class RestartDatabase(_OfDatabase):
    """The server is shut down in order, and started again."""

    name = "restart-database"
    seconds = 0.5

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, chance: random.Random) -> Iterator[dict[str, Any]]:
        cluster.servers[0].stop()
        try:
            yield {}
        finally:
            cluster.servers[0].start()
