#!/usr/bin/env python3
"""Measure explanations, compared with the searches they explain, in one process and without a database.

    python bench/explain.py [--hosts 100000] [--repeat 9]

Three clouds are created in memory: flat hosts; flat hosts, half of them in the aggregate of a sharing pool of disks;
and hosts with two NUMA nodes, each with a GPU and a NIC.  For each query, the output is the median processor time of
the search and of the explanation, and its summary.  Processor time depends less on other load than wall-clock time.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from placement import microversion as mv
from placement.extensions.v1.explain.explain import explain
from placement.index.build import build
from placement.index.records import Rows
from placement.index.snapshot import SHARES, Snapshot
from placement.schemas.document import Parameters
from placement.search.find import Settings, find
from placement.search.query import parse
from placement.search.query.query import SearchQuery

CLASSES = {1: "VCPU", 2: "MEMORY_MB", 3: "DISK_GB", 4: "PGPU", 5: "SRIOV_NET_VF"}
IDS = {name: number for number, name in CLASSES.items()}
RARE = "CUSTOM_RARE"
ZONES = [f"a0000000-0000-4000-8000-00000000000{number}" for number in range(3)]
POOL = "b0000000-0000-4000-8000-000000000000"

#: Queries by cloud; only the first of each has candidates.
QUERIES = {
    "flat": (
        "resources=VCPU:1,MEMORY_MB:1024&limit=10",
        "resources=VCPU:200",
        "resources=VCPU:8,MEMORY_MB:900000,DISK_GB:10",
        f"resources=VCPU:8,MEMORY_MB:4096&required={RARE},CUSTOM_UNKNOWN",
        f"resources=VCPU:60,MEMORY_MB:200000&required={RARE}&member_of={ZONES[0]}",
        "resources1=VCPU:8&resources2=VCPU:8&group_policy=isolate",
        "resources1=VCPU:60,MEMORY_MB:1024&resources2=VCPU:60&resources3=VCPU:60&group_policy=none",
    ),
    "pool": (
        "resources=VCPU:1,DISK_GB:10&limit=10",
        "resources=VCPU:8,DISK_GB:900000",
        f"resources=VCPU:8,DISK_GB:10&required={RARE}&member_of={ZONES[1]}",
        "resources1=VCPU:8&resources2=DISK_GB:10&same_subtree=1,2&group_policy=none",
    ),
    "numa": (
        "resources_g=PGPU:1&resources_n=SRIOV_NET_VF:1&group_policy=none&limit=10",
        "resources_g=PGPU:3&resources_n=SRIOV_NET_VF:1&group_policy=none",
        "resources_g=PGPU:1&resources_n=SRIOV_NET_VF:1&same_subtree=_g,_n&group_policy=none",
        "resources_1=PGPU:2&resources_2=PGPU:2&resources_3=PGPU:2&group_policy=isolate",
        f"resources_g=PGPU:1&required_g={RARE}&resources_c=VCPU:60&same_subtree=_g,_c&group_policy=none",
    ),
}


class Cloud:
    """A cloud, as rows of providers."""

    def __init__(self) -> None:
        self.rows = Rows([], [], [], [], [])
        self.random = random.Random(1)
        self._next = 0

    def provider(
        self, parent: int | None = None, root: int | None = None, traits: tuple[str, ...] = (), **totals: int
    ) -> int:
        """Add a provider, with usage up to two thirds of each total, and return its id."""
        self._next += 1
        id_ = self._next
        self.rows.providers.append((id_, f"{id_:08x}-0000-4000-8000-000000000000", f"p{id_}", 1, parent, root or id_))
        for name, total in totals.items():
            self.rows.inventories.append((id_, IDS[name], total, 0, 1, total, 1, 1.0))
            if used := self.random.randrange(max(total * 2 // 3, 1)):
                self.rows.usages.append((id_, IDS[name], used))
        self.rows.traits.extend((id_, trait) for trait in traits)
        return id_

    def snapshot(self) -> Snapshot:
        traits = sorted({trait for _, trait in self.rows.traits})
        return build(
            dataclasses.replace(self.rows, trait_ids={name: number for number, name in enumerate(traits)}), CLASSES
        )


def add_flat_host(cloud: Cloud, number: int, disk: int = 4000) -> int:
    """Add a host without children."""
    traits = ("HW_CPU_X86_AVX2", *([RARE] if number % 10_000 == 0 else ()))
    host = cloud.provider(traits=traits, VCPU=64, MEMORY_MB=262_144, **({"DISK_GB": disk} if disk else {}))
    cloud.rows.aggregates.append((host, ZONES[number % 3]))
    return host


def add_numa_host(cloud: Cloud, number: int) -> None:
    """Add a host with two NUMA nodes, each with two devices."""
    host = cloud.provider()
    for _ in range(2):
        node = cloud.provider(host, host, ("HW_NUMA_ROOT",), VCPU=32)
        cloud.provider(node, host, (RARE,) if number % 10_000 == 0 else (), PGPU=2)
        cloud.provider(node, host, SRIOV_NET_VF=8)


def create(kind: str, hosts: int) -> Snapshot:
    """Return the snapshot of a cloud of this kind."""
    cloud = Cloud()
    for number in range(hosts):
        if kind == "flat":
            add_flat_host(cloud, number)
        elif kind == "pool":
            host = add_flat_host(cloud, number, disk=0)
            if number % 2:
                cloud.rows.aggregates.append((host, POOL))
        else:
            add_numa_host(cloud, number)
    if kind == "pool":
        pool = cloud.provider(traits=(SHARES,), DISK_GB=100_000)
        cloud.rows.aggregates.append((pool, POOL))
    return cloud.snapshot()


def query_of(text: str) -> SearchQuery:
    """Return the query of a query string."""
    return parse.search_query(Parameters(parse_qsl(text)), mv.LATEST)


def median(work: Callable[[], object], repeat: int) -> float:
    """Return the median processor time of a call, in milliseconds."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--only", help="one cloud: " + " ".join(QUERIES))
    arguments = parser.parse_args()
    for kind in [arguments.only] if arguments.only else QUERIES:
        snapshot = create(kind, arguments.hosts)
        print(f"{kind}: {arguments.hosts:,} hosts, {len(snapshot):,} providers")
        for text in QUERIES[kind]:
            measure(snapshot, text, arguments.repeat)


def measure(snapshot: Snapshot, text: str, repeat: int) -> None:
    """Print the times of one query."""
    query = query_of(text)
    searched = median(lambda: find(query, snapshot, Settings(max_candidates=1000)), repeat)
    explained = median(lambda: explain(query, snapshot), repeat)
    result = explain(query, snapshot)
    remark = "" if result.complete else ", cut short"
    print(f"  search {searched:7.1f} ms   explanation {explained:7.1f} ms   {text}")
    print(f"      {result.summary[:150]} [{len(result.relaxations)} relaxations{remark}]", flush=True)


if __name__ == "__main__":
    main()
