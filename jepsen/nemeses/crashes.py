"""Crashes that restore the database's files from some seconds before.

The same happens with a server that does not flush its log at each COMMIT, with a disk that ignores flushes, or with a
virtual machine that is reset to a snapshot.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from jepsen.clusters.cluster import Cluster
from jepsen.nemeses.nemesis import Nemesis
from jepsen.nemeses.restore import copy_sqlite
from tests.servers import ServerProcess


class LoseTail(Nemesis):
    """A kill of the database that loses the commits of the seconds before.

    The kill comes at the end of the harm, so the recovery time counts from there.
    """

    name = "lose-tail"
    kills = "database"
    pauses = True
    loses_tail = keeps_earlier = True
    seconds = 2.0

    def applies_to(self, cluster: Cluster) -> bool:
        return cluster.kind == "sqlite" or len(cluster.servers) == 1

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        with _restore_files(cluster.servers[0]) if cluster.servers else _power_cut(cluster):
            yield {}


@contextlib.contextmanager
def _restore_files(server: ServerProcess) -> Iterator[None]:
    """At the end of the block, kill the server, and start it with its files from the beginning of the block."""
    copy = server.directory.with_name(f"{server.directory.name}-kept")
    with server.frozen():
        subprocess.run(["cp", "--archive", str(server.directory), str(copy)], check=True)
    try:
        yield
    finally:
        server.kill()
        shutil.rmtree(server.directory)
        copy.rename(server.directory)
        server.start()


@contextlib.contextmanager
def _power_cut(cluster: Cluster) -> Iterator[None]:
    """At the end of the block, kill all services, and start them with the file from the beginning of the block."""
    path = Path(str(sa.make_url(cluster.database_url).database))
    copy = path.with_name(f"{path.name}-kept")
    copy_sqlite(path, copy)
    try:
        yield
    finally:
        for service in cluster.services:
            service.kill()
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        copy.replace(path)
        for service in cluster.services:
            service.start()
