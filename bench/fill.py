#!/usr/bin/env python3
"""Fill a Placement database with hosts, directly by SQL.

    python bench/fill.py DATABASE_URL flat|nested|devices|numa [--hosts 10000] [--used 0.95]

    flat      a host has VCPU, MEMORY_MB and DISK_GB, three traits and three aggregates
    nested    a host has DISK_GB and two NUMA nodes, each with VCPU, MEMORY_MB and two children: an FPGA, a VGPU
    devices   a host has VCPU, MEMORY_MB and DISK_GB, and eight children of one PGPU each
    numa      a host has DISK_GB and two NUMA nodes, each with VCPU, MEMORY_MB and three children: two boards of four
              PGPU, and a NIC of eight SRIOV_NET_VF

The database of any Placement service can be filled after a first start of the service, which inserts the standard
names.  Running services of this project reload their index.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import random
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from placement.db.engine.dialects import normalise
from placement.db.schema import tables

#: A trait of every host, and a trait of every ten-thousandth host.
TRAIT, RARE = "HW_CPU_X86_AVX2", "CUSTOM_RARE"
_VIRTUALISATION = ("HW_CPU_X86_VMX", "HW_CPU_X86_SVM")
_EXTENSIONS = ("HW_CPU_X86_SSE41", "HW_CPU_X86_SSE42", "HW_CPU_X86_AVX", "HW_CPU_X86_AVX512F")
_RARE_EVERY = 10_000
_ZONES, _CELLS, _RACK = 3, 10, 40
_BATCH = 2000


@dataclasses.dataclass(frozen=True)
class Node:
    """A provider of every host: totals and allocation ratios by class, and the position of its parent in the host."""

    name: str
    inventory: Mapping[str, tuple[int, float]]
    parent: int | None = 0
    traits: Sequence[str] = ()


_COMPUTE = {"VCPU": (64, 4.0), "MEMORY_MB": (262_144, 1.0)}
_DISK = {"DISK_GB": (4000, 1.0)}


def _numa(place: int, number: int) -> tuple[Node, ...]:
    return (
        Node(f"numa{number}", _COMPUTE, traits=["HW_NUMA_ROOT"]),
        Node(f"numa{number}-fpga", {"FPGA": (1, 1.0)}, place, ["CUSTOM_FPGA_REGION"]),
        Node(f"numa{number}-vgpu", {"VGPU": (8, 1.0)}, place, ["CUSTOM_VGPU_TYPE"]),
    )


def _boards(place: int, number: int) -> tuple[Node, ...]:
    return (
        Node(f"numa{number}", _COMPUTE, traits=["HW_NUMA_ROOT"]),
        *(Node(f"numa{number}-gpu{board}", {"PGPU": (4, 1.0)}, place) for board in range(2)),
        Node(f"numa{number}-nic", {"SRIOV_NET_VF": (8, 1.0)}, place),
    )


TOPOLOGIES: dict[str, tuple[Node, ...]] = {
    "flat": (Node("", _COMPUTE | _DISK, None),),
    "nested": (Node("", _DISK, None), *_numa(1, 0), *_numa(4, 1)),
    "devices": (Node("", _COMPUTE | _DISK, None), *(Node(f"gpu{n}", {"PGPU": (1, 1.0)}) for n in range(8))),
    "numa": (Node("", _DISK, None), *_boards(1, 0), *_boards(5, 1)),
}


def aggregate(name: str) -> str:
    """Return the uuid of an aggregate: "zone-0" (a third of all hosts), "cell-0" (a tenth), "rack-0" (forty hosts)."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def fill(database_url: str | sa.URL, topology: str, hosts: int, used: float = 0.0, consumers: int = 8) -> None:
    """Add hosts to a database.

    Args:
        used: The fraction of every capacity to allocate.
        consumers: Consumers per host, which share the allocations.
    """
    engine = sa.create_engine(normalise(database_url))
    with engine.begin() as connection:
        filler = Filler(connection, topology, hosts)
        filler.providers()
        filler.associations()
        if used:
            filler.allocations(used, consumers)
        filler.finish()
    engine.dispose()


class Filler:
    """A writer that inserts the rows of a number of hosts in one transaction."""

    def __init__(self, connection: sa.Connection, topology: str, hosts: int) -> None:
        self._connection = connection
        self._nodes = TOPOLOGIES[topology]
        self._topology, self._hosts = topology, hosts
        # Different uuids for each fill of a database, but reproducible on equal databases.
        self._first = self._highest(tables.resource_providers) + 1
        self._random = random.Random(self._first)
        self._classes = self._ids(tables.resource_classes, {name for node in self._nodes for name in node.inventory})

    def providers(self) -> None:
        """Insert the providers and their inventories."""
        self._insert(
            tables.resource_providers,
            ("id", "uuid", "name", "generation", "root_provider_id", "parent_provider_id"),
            (
                (provider, self._uuid(), f"{self._topology}-{root}{node.name and '-' + node.name}", 1, root, parent)
                for node, provider, root, parent in self._provider_rows()
            ),
        )
        self._insert(
            tables.inventories,
            (
                *("resource_provider_id", "resource_class_id", "total", "allocation_ratio"),
                *("reserved", "min_unit", "max_unit", "step_size"),
            ),
            (
                (provider, self._classes[name], total, ratio, 0, 1, total, 1)
                for node, provider, _, _ in self._provider_rows()
                for name, (total, ratio) in node.inventory.items()
            ),
        )

    def associations(self) -> None:
        """Insert three traits and three aggregates for every host, and the traits of its children."""
        every = {TRAIT, RARE, *_VIRTUALISATION, *_EXTENSIONS}
        traits = self._ids(tables.traits, every.union(*(node.traits for node in self._nodes)))
        self._insert(
            tables.resource_provider_traits,
            ("resource_provider_id", "trait_id"),
            (
                (provider, traits[name])
                for node, provider, root, _ in self._provider_rows()
                for name in (*node.traits, *(self._traits(root) if node.parent is None else ()))
            ),
        )
        names = {name for number in range(self._hosts) for name in _aggregates(number)}
        aggregates = self._ids(tables.placement_aggregates, {aggregate(name) for name in names}, "uuid")
        by_name = {name: aggregates[aggregate(name)] for name in names}
        self._insert(
            tables.resource_provider_aggregates,
            ("resource_provider_id", "aggregate_id"),
            ((root, by_name[name]) for number, root in enumerate(self._roots()) for name in _aggregates(number)),
        )

    def allocations(self, used: float, consumers: int) -> None:
        """Insert consumers with allocations of a fraction of every capacity."""
        owner = [self._ids(table, {"bench"}, "external_id")["bench"] for table in (tables.projects, tables.users)]
        names = {(root, number): self._uuid() for root in self._roots() for number in range(consumers)}
        self._insert(
            tables.consumers,
            ("uuid", "project_id", "user_id", "generation"),
            ((name, *owner, 1) for name in names.values()),
        )
        self._insert(
            tables.allocations,
            ("resource_provider_id", "resource_class_id", "consumer_id", "used"),
            (
                (provider, self._classes[name], names[root, number], amount)
                for node, provider, root, _ in self._provider_rows()
                for name, (total, ratio) in node.inventory.items()
                for number, amount in enumerate(_shares(int(total * ratio * used), consumers))
                if amount
            ),
        )

    def finish(self) -> None:
        """Make running services reload their index, and advance the id sequences of PostgreSQL."""
        if sa.inspect(self._connection).has_table(tables.feed_instance.name):
            self._connection.execute(sa.update(tables.feed_instance).values(uuid=str(uuid.uuid4())))
        if self._connection.dialect.name == "postgresql":
            self._connection.execute(
                sa.select(
                    sa.func.setval(
                        sa.func.pg_get_serial_sequence("resource_providers", "id"),
                        sa.select(sa.func.max(tables.resource_providers.c.id)).scalar_subquery(),
                    )
                )
            )

    def _roots(self) -> range:
        return range(self._first, self._first + self._hosts * len(self._nodes), len(self._nodes))

    def _provider_rows(self) -> Iterator[tuple[Node, int, int, int | None]]:
        """Yield every provider with its id, the id of its root and the id of its parent."""
        for root in self._roots():
            for place, node in enumerate(self._nodes):
                yield node, root + place, root, None if node.parent is None else root + node.parent

    def _traits(self, root: int) -> Iterator[str]:
        number = (root - self._first) // len(self._nodes)
        yield TRAIT
        yield _VIRTUALISATION[number % len(_VIRTUALISATION)]
        yield _EXTENSIONS[number % len(_EXTENSIONS)]
        if number % _RARE_EVERY == 0:
            yield RARE

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _highest(self, table: sa.Table) -> int:
        return int(self._connection.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0)

    def _ids(self, table: sa.Table, names: Iterable[str], column: str = "name") -> dict[str, int]:
        """Return the ids by name; insert missing rows, except for resource classes."""
        required = set(names)
        rows = sa.select(table.c[column], table.c.id)
        ids = {name: row_id for name, row_id in self._connection.execute(rows) if name in required}
        missing = sorted(required - ids.keys())
        if not missing:
            return ids
        if table is tables.resource_classes:
            raise SystemExit(f"the database has no resource classes {', '.join(missing)}: start the service on it once")
        self._insert(table, (column,), ((name,) for name in missing))
        return self._ids(table, required, column)

    def _insert(self, table: sa.Table, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows in batches, with literal values, which are faster than bound values.

        All values come from this script, and no name contains a quote.
        """
        remaining = iter(rows)
        while batch := list(itertools.islice(remaining, _BATCH)):
            values = ", ".join([f"({', '.join(map(_literal, row))})" for row in batch])
            self._connection.exec_driver_sql(f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {values}")


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _aggregates(number: int) -> tuple[str, str, str]:
    """Return the aggregates of a host; all hosts of a rack are in the same zone and cell."""
    rack = number // _RACK
    return f"zone-{rack % _ZONES}", f"cell-{rack % _CELLS}", f"rack-{rack}"


def _shares(amount: int, consumers: int) -> list[int]:
    """Return the amount, split into nearly equal parts."""
    return [(amount + number) // consumers for number in range(consumers)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", metavar="DATABASE_URL")
    parser.add_argument("topology", choices=sorted(TOPOLOGIES))
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--used", type=float, default=0.0, help="the fraction of every capacity to allocate")
    parser.add_argument("--consumers", type=int, default=8, help="the number of consumers per host")
    arguments = parser.parse_args()
    began = time.perf_counter()
    fill(arguments.url, arguments.topology, arguments.hosts, arguments.used, arguments.consumers)
    print(f"{arguments.hosts:,} hosts in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
