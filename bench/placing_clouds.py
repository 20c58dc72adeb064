"""Clouds for measurements: a database with hosts of one kind, served by this project under uWSGI."""

from __future__ import annotations

import dataclasses
import time

import claim_limit
import claims
import fill
import load
import placing_checks
import serve_pair
from placing_requests import Replies

from tests import servers


@dataclasses.dataclass(frozen=True)
class Cloud:
    """A running service and its database, and the responses of all runs on it."""

    topology: str
    hosts: int
    server: load.Server
    pid: int
    database_url: str
    replies: Replies = dataclasses.field(default_factory=Replies)

    def failures(self) -> list[str]:
        """Return the violations in the database after all runs, as sentences."""
        together = self.topology == "numa"
        sentences = placing_checks.failures(self.database_url, self.replies.holdings(), together)
        return [f"{self.topology}, {self.hosts:,} hosts: {sentence}" for sentence in sentences]


class Clouds:
    """The clouds of a run, on one database server."""

    def __init__(self, database: servers.ServerProcess, workers: int, threads: int, driver: str | None = None) -> None:
        """Prepare to create clouds; ``driver`` is the driver of the services and the bare SQL, None for the default."""
        self._database, self._workers, self._threads, self._driver = database, workers, threads, driver
        self._kept: dict[tuple[str, int], Cloud] = {}
        self.made: list[Cloud] = []

    def get(self, topology: str, hosts: int) -> Cloud:
        """Return the cloud of this topology and number of hosts, creating it the first time."""
        if (topology, hosts) not in self._kept:
            self._kept[topology, hosts] = self.create(topology, hosts)
        return self._kept[topology, hosts]

    def create(self, topology: str, hosts: int) -> Cloud:
        """Create an empty cloud, and wait until all workers of its service have loaded their index."""
        began = time.perf_counter()
        url = self.empty_database()
        service = serve_pair.start_ours(url, self._workers, threads=self._threads)
        fill.fill(url, topology, hosts)
        server = claims.connect(service.url, "admin")
        search = "/allocation_candidates?resources=VCPU:1&limit=1"
        load.run(server, [claims.reader(server, search) for _ in range(8 * self._workers)], 0)
        self.made.append(Cloud(topology, hosts, server, service.pid, url))
        print(f"{topology}, {hosts:,} hosts: ready after {time.perf_counter() - began:.0f} s", flush=True)
        return self.made[-1]

    def empty_database(self) -> str:
        """Return the URL of a new, empty database on the same server."""
        return serve_pair.with_driver(self._database.create_database(), self._driver)

    def processor_seconds(self, cloud: Cloud) -> tuple[float, float]:
        """Return the processor seconds of a cloud's service and of the database server so far."""
        return claim_limit.processor_seconds([cloud.pid]), claim_limit.processor_seconds([self._database.child.pid])
