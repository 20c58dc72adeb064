#!/usr/bin/env python3
"""Measure picking places for many consumers, in one process and without a database.

    python bench/pick.py [--hosts 5000] [--repeat 5] [--requests 1000] [--only CLOUD]

Two clouds are created in memory: flat hosts, and hosts with two NUMA nodes, each with two GPUs and a NIC.  Each line
shows the median processor times for a number of requests: one search for as many candidates (``find``), and picks with
each strategy.  The measurements alternate, so that their ratios depend little on other load.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from bench.explain import Cloud, add_flat_host, query_of
from placement.extensions.v1.pick.picker import Picker, PickRequest
from placement.extensions.v1.pick.strategy import Preference, Strategy
from placement.index.snapshot import Snapshot
from placement.search.find import Settings, find
from placement.search.query.query import SearchQuery

NESTED = (
    "resources_G1=PGPU:1&resources_G2=PGPU:1&resources_N=SRIOV_NET_VF:1&required_M=HW_NUMA_ROOT"
    "&same_subtree=_G1,_G2,_N,_M&group_policy=isolate"
)
STRATEGIES = {
    "spread": Strategy(Preference.SPREAD),
    "pack": Strategy(Preference.PACK),
    "random": Strategy(Preference.RANDOM),
    "over aggregates": Strategy(spread_over="aggregate"),
}


def add_nested_host(cloud: Cloud, number: int) -> None:
    """Add a host with two NUMA nodes, each with two GPUs and a NIC; every other host uses a third of its GPUs."""
    host = cloud.provider()
    for _ in range(2):
        node = cloud.provider(host, host, ("HW_NUMA_ROOT",), VCPU=32)
        for _ in range(2):
            gpu = cloud.provider(node, host, PGPU=1)
            if cloud.random.random() < number % 2 / 3:
                cloud.rows.usages.append((gpu, 4, 1))
        cloud.provider(node, host, SRIOV_NET_VF=8)


#: A function that adds a host, and a query, by cloud.
CLOUDS: dict[str, tuple[Callable[[Cloud, int], object], str]] = {
    "flat": (add_flat_host, "resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20"),
    "add_nested_host": (add_nested_host, NESTED),
}


def milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def measure(snapshot: Snapshot, query: SearchQuery, requests: int, repeat: int) -> None:
    """Print the times of finding and picking places for a number of requests."""
    works: dict[str, Callable[[], object]] = {"find": lambda: find(query, snapshot, Settings(max_candidates=requests))}
    for name, strategy in STRATEGIES.items():
        works[name] = lambda strategy=strategy: Picker(snapshot, strategy).pick([PickRequest(query)] * requests)
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            times[name].append(milliseconds(work))
    placed = sum(pick is not None for pick in Picker(snapshot).pick([PickRequest(query)] * requests))
    medians = "   ".join(f"{name} {statistics.median(values):8.2f} ms" for name, values in times.items())
    print(f"  {requests:6,} requests   {medians}   {placed:,} placed", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", help="one cloud: " + " ".join(CLOUDS))
    arguments = parser.parse_args()
    for name, (add, text) in CLOUDS.items():
        if arguments.only not in (None, name):
            continue
        cloud = Cloud()
        for number in range(arguments.hosts):
            add(cloud, number)
        snapshot = cloud.snapshot()
        print(f"{name}: {arguments.hosts:,} hosts, {len(snapshot):,} providers, {text}")
        measure(snapshot, query_of(text), 1, arguments.repeat * 10)
        measure(snapshot, query_of(text), arguments.requests, arguments.repeat)


if __name__ == "__main__":
    main()
