#!/usr/bin/env python3
"""Measure the choice of a node for an allocation, if few of many nodes match, and whole requests, in this process.

    python bench/baremetal_choice.py DATABASE_URL [--nodes 100000] [--fitting 10] [--repeat 200]

The database must have the schema (``placement-manage db sync``) and no nodes.  The nodes are inserted directly by SQL,
all free and of one class in Placement.  The requests:

    trait       a trait of few nodes
    owner       an owner of few nodes
    spelling    a spelling of the class that few nodes have
    candidates  few nodes, by uuid
    any         any node
    none        a trait and an owner of few nodes each, which no node has both

A line shows the 10th percentile, the median and the 99th percentile of the repetitions, and the median processor time
of this process: for the choice from a current index, and for a request with its claim and record.  Ending the
allocation is not measured.
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from bench.index import Duration, duration_of, show
from placement.db.database import Database
from placement.db.schema import tables
from placement.db.upkeep import standard
from placement.extensions.baremetal.objects import placing
from placement.extensions.baremetal.objects.candidates import Choice
from placement.extensions.baremetal.objects.node import inventory_class
from placement.extensions.baremetal.objects.placing import NodeRequest
from placement.extensions.baremetal.objects.record import Record
from placement.extensions.baremetal.tables import baremetal_nodes
from placement.index.live import LiveIndex
from placement.objects.consumer import Owner
from placement.objects.resource_class import ResourceClass
from tests.made import opened

_BATCH = 2000
_TRAIT = "HW_CPU_X86_AVX512F"
_OWNER = Owner("bench", "bench", "BAREMETAL")
_CLASS, _OTHER_SPELLING = "bench.node", "bench-node"


def fill(database: Database, count: int, fitting: int) -> list[str]:
    """Insert the nodes, and return their uuids.

    The first ``fitting`` nodes have the trait, the next ones the owner, and the next ones the other spelling.
    """
    unit_class = inventory_class(_CLASS)
    database.write(lambda db: ResourceClass.create(db, unit_class))
    uuids = [str(uuid.uuid4()) for _ in range(count)]
    with database.engine.begin() as db:
        class_id = db.execute(_CLASS_ID, {"name": unit_class}).scalar_one()
        trait_id = db.execute(_TRAIT_ID, {"name": _TRAIT}).scalar_one()
        _insert(db, tables.resource_providers, ({"uuid": node, "name": node, "generation": 1} for node in uuids))
        db.execute(_OWN_ROOT)
        ids = {row.uuid: row.id for row in db.execute(_PROVIDERS)}
        unit = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
        unit["resource_class_id"] = class_id
        _insert(db, tables.inventories, ({"resource_provider_id": ids[node], **unit} for node in uuids))
        _insert(db, baremetal_nodes, (_node(node, number // fitting) for number, node in enumerate(uuids)))
        rows = ({"resource_provider_id": ids[node], "trait_id": trait_id} for node in uuids[:fitting])
        _insert(db, tables.resource_provider_traits, rows)
    standard.renew(database)
    return uuids


def _node(node: str, group: int) -> dict[str, Any]:
    return {
        "uuid": node,
        "driver": "ipmi",
        "resource_class": _OTHER_SPELLING if group == 2 else _CLASS,
        "owner": "mine" if group == 1 else "others",
        "provision_state": "available",
        "power_state": "power off",
        "maintenance": False,
        "details": {"properties": {"cpus": 64, "memory_mb": 524288}, "driver_info": {"address": "10.0.0.1"}},
    }


def _insert(db: sa.Connection, table: sa.Table, rows: Iterable[dict[str, Any]]) -> None:
    listed = [*rows]
    for start in range(0, len(listed), _BATCH):
        db.execute(sa.insert(table), listed[start : start + _BATCH])


_CLASS_ID = sa.select(tables.resource_classes.c.id).where(tables.resource_classes.c.name == sa.bindparam("name"))
_TRAIT_ID = sa.select(tables.traits.c.id).where(tables.traits.c.name == sa.bindparam("name"))
_P = tables.resource_providers.c
_PROVIDERS = sa.select(_P.uuid, _P.id)
_OWN_ROOT = sa.update(tables.resource_providers).where(_P.root_provider_id.is_(None)).values(root_provider_id=_P.id)


def _request(resource_class: str, **columns: Any) -> Record:
    values = {"name": None, "owner": None, "traits": (), "candidate_nodes": (), "extra": {}, **columns}
    return Record(uuid=str(uuid.uuid4()), resource_class=resource_class, created_at=tables.utcnow(), **values)


def requests(uuids: list[str], fitting: int) -> dict[str, Record]:
    """Return the records of the requests, by name."""
    return {
        "trait": _request(_CLASS, traits=[_TRAIT]),
        "owner": _request(_CLASS, owner="mine"),
        "spelling": _request(_OTHER_SPELLING),
        "candidates": _request(_CLASS, candidate_nodes=uuids[-fitting:]),
        "any": _request(_CLASS),
        "none": _request(_CLASS, traits=[_TRAIT], owner="mine"),
    }


def measure(database: Database, index: LiveIndex, name: str, record: Record, repeat: int) -> None:
    """Print the lines for one request."""

    def choice() -> object:
        return database.read(Choice(index.current(), record).candidate)

    assert (choice() is None) == (name == "none"), name
    show(f"{name}: choice", [duration_of(choice) for _ in range(repeat)])
    requested: list[Record] = []

    def request() -> None:
        requested.append(replace(record, uuid=str(uuid.uuid4()), created_at=tables.utcnow()))
        NodeRequest(database, index, requested[-1], _OWNER, attempts=10).place()

    def end() -> None:
        database.write(lambda db: placing.end(db, Record.get(db, requested[-1].uuid)))

    durations: list[Duration] = []
    for _ in range(repeat):
        durations.append(duration_of(request))
        end()
    show(f"{name}: request", durations)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--fitting", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=200)
    options = parser.parse_args()
    with opened(options.url) as database:
        standard.insert(database)
        uuids = fill(database, options.nodes, options.fitting)
        index = LiveIndex(database)
        show("index: load", [duration_of(index.current)])
        print(f"{'':<44}{'10%':>12}{'50%':>12}{'99%':>12}{'processor':>12}")
        for name, record in requests(uuids, options.fitting).items():
            measure(database, index, name, record, options.repeat)


if __name__ == "__main__":
    main()
