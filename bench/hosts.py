#!/usr/bin/env python3
"""Measure the processor time of a claim with one, two and three services on one database, by server.

    python bench/hosts.py [--only mariadb-hosts,postgresql-hosts,galera-hosts] [--services 1 2 3] [--seconds 3]

Each database is one of the clusters of ``jepsen/clusters``: a primary with its replica, or three nodes of Galera.
Nothing waits for a disk.  Eight clients of each service claim three classes for new consumers, each on its own
providers.  With fewer cores than processes the rates mean little; the processor time of a claim shows the needs of a
service and of each database server on dedicated cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import claims
import load
from claim_limit import processor_seconds

from jepsen import catalogue
from jepsen.clusters.hosts import Hosts
from tests import children

CLIENTS = 8
CLUSTERS = ("mariadb-hosts", "postgresql-hosts", "postgresql-hosts-sync", "galera-hosts")


def measure(cluster: Hosts, number: int, seconds: float) -> str:
    """Return a line about the first ``number`` services of a cluster."""
    servers = [load.Server(service.url) for service in cluster.services[:number]]
    clients = [claims.on_own_providers(server, CLIENTS) for server in servers]
    processes = [[service.pid for service in cluster.services], *([server.child.pid] for server in cluster.servers)]
    before = [processor_seconds(pids) for pids in processes]
    with ThreadPoolExecutor(number) as threads:
        results = [*threads.map(lambda server, group: load.run(server, group, seconds), servers, clients)]
    used = [processor_seconds(pids) - start for pids, start in zip(processes, before, strict=True)]
    claimed = sum(result.successes for result in results)
    refused = sum(sum(result.statuses.values()) for result in results) - claimed
    service_ms, *server_ms = (seconds / claimed * 1000 for seconds in used)
    rate = claimed / max(result.seconds for result in results)
    return (
        f"{cluster.name:22} {number} services: {rate:6,.0f}/s, {refused or 'none'} refused; milliseconds of processor "
        f"time per claim: services {service_ms:.2f}, database servers {', '.join(f'{ms:.2f}' for ms in server_ms)}"
    )


def measure_cluster(name: str, numbers: Sequence[int], seconds: float) -> None:
    with catalogue.cluster(name)() as cluster:
        assert isinstance(cluster, Hosts)
        while len(cluster.services) < max(numbers):
            cluster.add()
        for number in numbers:
            measure(cluster, number, 0.5)  # connections, caches
            print(measure(cluster, number, seconds), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CLUSTERS), help="names of clusters, separated by commas")
    parser.add_argument("--services", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    children.begin_run()
    try:
        print(f"machine: {claims.machine()}", flush=True)
        for name in arguments.only.split(","):
            measure_cluster(name, arguments.services, arguments.seconds)
    finally:
        children.end_run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
