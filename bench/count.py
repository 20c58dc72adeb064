#!/usr/bin/env python3
"""Measure counting how many times a query fits, in this process and without a database.

    python bench/count.py [--hosts 10000] [--repeat 30]

The clouds; usage differs from host to host:

    flat      one provider per host: VCPU, MEMORY_MB, DISK_GB, a trait, 50 aggregates
    nested    hosts with two NUMA nodes, each with a device
    mixed     the same with two devices per node, and random usage
    pool      flat hosts without disks, and one shared pool

The lines are for the count, and for the response document with 1,000 trees.  Each shows the 10th percentile, the median
and the 99th percentile of the repetitions, and the median processor time of this process.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from bench.index import duration_of, show
from placement.extensions.v1.count.count import count
from placement.extensions.v1.schemas import capacity
from placement.http.response import encode
from placement.index.snapshot import SHARES, Snapshot
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.world import Stock, World


def flat(hosts: int) -> World:
    """Return hosts of one provider each."""
    world = World()
    for number in range(hosts):
        world.host(
            f"host{number}",
            traits=["T0"] if number % 2 else [],
            aggregates=[f"A{number % 50}"],
            VCPU=Stock(64, allocation_ratio=4.0, used=number % 200),
            MEMORY_MB=Stock(262144, reserved=4096, used=number % 100 * 1000),
            DISK_GB=2000,
        )
    return world


def nested(hosts: int) -> World:
    """Return hosts with two NUMA nodes, each with a device."""
    world = World()
    for number in range(hosts):
        world.host(f"host{number}", DISK_GB=2000, aggregates=[f"A{number % 50}"])
        for node in range(2):
            name = f"node{number}-{node}"
            world.host(name, parent=f"host{number}", VCPU=Stock(32, used=number % 20), MEMORY_MB=131072)
            world.host(f"device{number}-{node}", parent=name, PGPU=Stock(4, used=number % 5))
    return world


def mixed(hosts: int) -> World:
    """Return hosts with two NUMA nodes of two devices each, and random usage of everything."""
    world, order = World(), random.Random(1)
    for number in range(hosts):
        world.host(f"host{number}", DISK_GB=Stock(2000, used=order.randint(0, 2000)))
        for node in range(2):
            name = f"node{number}-{node}"
            used = order.randint(0, 32), order.randint(0, 131072)
            world.host(name, f"host{number}", VCPU=Stock(32, used=used[0]), MEMORY_MB=Stock(131072, used=used[1]))
            for device in range(2):
                world.host(f"device{number}-{node}-{device}", name, PGPU=Stock(4, used=order.randint(0, 4)))
    return world


def pool(hosts: int) -> World:
    """Return hosts without disks, and a pool."""
    world = World()
    world.host("pool", traits=[SHARES], aggregates=["A"], DISK_GB=1_000_000)
    for number in range(hosts):
        world.host(f"host{number}", aggregates=["A"], VCPU=Stock(64, used=number % 20))
    return world


def group(suffix: str, *required: str, **resources: int) -> Group:
    return Group(suffix, resources, NameCondition(tuple(frozenset({trait}) for trait in required)))


NODE = group("_node", VCPU=2, MEMORY_MB=2048)
BELOW = SearchQuery(
    (group("", DISK_GB=10), NODE, group("_device", PGPU=1)), same_subtrees=(frozenset({"_node", "_device"}),)
)
UNEQUAL = group("_a", VCPU=3, MEMORY_MB=5000), group("_b", VCPU=1, MEMORY_MB=9000)
QUERIES = {
    flat: {
        "three classes": SearchQuery((group("", VCPU=2, MEMORY_MB=4096, DISK_GB=20),)),
        "three classes and a trait": SearchQuery((group("", "T0", VCPU=2, MEMORY_MB=4096, DISK_GB=20),)),
    },
    nested: {
        "a disk and a node": SearchQuery((group("", DISK_GB=10), NODE)),
        "two isolated nodes": SearchQuery((NODE, group("_other", VCPU=2, MEMORY_MB=2048)), isolate=True),
        "a device below its node": BELOW,
    },
    mixed: {
        "a device below its node": BELOW,
        "two isolated devices below their node": replace(
            BELOW,
            groups=(*BELOW.groups, group("_other", PGPU=1)),
            same_subtrees=(frozenset({"_node", "_device", "_other"}),),
            isolate=True,
        ),
        "two unequal nodes": SearchQuery(UNEQUAL, isolate=True),
        "two unequal demands of any nodes": SearchQuery(UNEQUAL),
    },
    pool: {
        "enough for all": SearchQuery((group("", VCPU=2, DISK_GB=1),)),
        "too little": SearchQuery((group("", VCPU=2, DISK_GB=100),)),
    },
}


def measure(snapshot: Snapshot, title: str, query: SearchQuery, repeat: int) -> None:
    """Print the lines of one query."""
    counted = count(query, snapshot)
    print(f"{title}: {counted.count:,}, {counted.reason}")
    show("  count", [duration_of(lambda: count(query, snapshot)) for _ in range(repeat)])
    show("  document", [duration_of(lambda: encode(capacity.document(counted, 1000))) for _ in range(repeat)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=30)
    arguments = parser.parse_args()
    print(f"{'':<44}{'p10':>12}{'median':>12}{'p99':>12}{'processor':>12}")
    for cloud, queries in QUERIES.items():
        snapshot = cloud(arguments.hosts).snapshot()
        for title, query in queries.items():
            measure(snapshot, f"{cloud.__name__}, {title}", query, arguments.repeat)


if __name__ == "__main__":
    main()
