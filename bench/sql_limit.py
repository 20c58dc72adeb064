#!/usr/bin/env python3
"""Measure the upper limit for claims on a database: the bare SQL of a claim in a loop.

    python bench/sql_limit.py DATABASE_URL

Each client is a process.  It sends the service's statements for a claim of three classes on one provider by a new
consumer: lock the provider, read its inventories and their usage, read the consumer, increase the generation, insert
the consumer, its allocations and the row of the change feed, commit.  Only the driver is used.

The database must be empty: the tables are created for the run and dropped after it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import uuid
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from placement.db.schema import tables

CLASSES = (0, 1, 2)

LOCK = "SELECT id, generation FROM resource_providers WHERE uuid = %s ORDER BY id FOR UPDATE"
INVENTORY = """
    SELECT i.resource_class_id, i.total, i.reserved, i.allocation_ratio, i.min_unit, i.max_unit, i.step_size,
           (SELECT SUM(a.used) FROM allocations a
             WHERE a.resource_provider_id = i.resource_provider_id AND a.resource_class_id = i.resource_class_id)
      FROM inventories i WHERE i.resource_provider_id = %s AND i.resource_class_id IN (0, 1, 2)"""
CONSUMER = """
    SELECT c.id, c.generation, a.resource_provider_id, a.resource_class_id, a.used
      FROM consumers c LEFT JOIN allocations a ON a.consumer_id = c.uuid WHERE c.uuid = %s"""
RAISE = "UPDATE resource_providers SET generation = generation + 1 WHERE id = %s AND generation = %s"
NEW_CONSUMER = "INSERT INTO consumers (uuid, project_id, user_id, generation) VALUES (%s, 1, 1, 1)"
NEW_ALLOCATIONS = (
    "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used) VALUES "
    + ", ".join(["(%s, %s, %s, 1)"] * len(CLASSES))
)
FEED = "INSERT INTO provider_changes (writer_id, seq, provider_id, what) VALUES (%s, %s, %s, 'usage')"


def prepare(engine: sa.Engine, providers: int) -> list[str]:
    """Create the tables and providers with inventories; return the uuids of the providers."""
    if sa.inspect(engine).get_table_names():
        raise SystemExit("the database is not empty: use an empty one, because all tables are dropped at the end")
    tables.metadata.create_all(engine)
    uuids = [str(uuid.uuid4()) for _ in range(providers)]
    inventory: dict[str, Any] = {"total": 10**9, "reserved": 0, "allocation_ratio": 1.0}
    inventory |= {"min_unit": 1, "max_unit": 10**9, "step_size": 1}
    with engine.begin() as db:
        for number, provider in enumerate(uuids, 1):
            db.execute(
                sa.insert(tables.resource_providers).values(id=number, uuid=provider, name=provider, generation=0)
            )
            rows = [inventory | {"resource_provider_id": number, "resource_class_id": name} for name in CLASSES]
            db.execute(sa.insert(tables.inventories), rows)
    return uuids


class Claimer:
    """A client that claims through one connection."""

    def __init__(self, url: str) -> None:
        engine = _engine(url)
        with engine.begin() as db:
            self.writer = db.execute(sa.insert(tables.change_writers)).inserted_primary_key[0]  # type: ignore[index]
        self.sqlite = engine.dialect.name == "sqlite"
        self._pooled = (
            engine.raw_connection()
        )  # referenced, because the connection is closed when this object is collected
        self.db = cast(Any, self._pooled.driver_connection)
        if self.sqlite:
            self.db.isolation_level = None
            self._run("PRAGMA synchronous = FULL")
        elif engine.dialect.name == "postgresql":
            self._run("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")
            self.db.commit()
        else:
            self._run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        self.seq = 0

    def _run(self, statement: str, *values: Any) -> list[Any]:
        if self.sqlite:
            statement = statement.replace("%s", "?").removesuffix(" FOR UPDATE")
        cursor = self.db.cursor()
        cursor.execute(statement, values)
        rows: list[Any] = cursor.fetchall() if cursor.description else []
        cursor.close()
        return rows

    def claim(self, provider: str) -> None:
        """Claim one unit of each class for a new consumer."""
        consumer = str(uuid.uuid4())
        self.seq += 1
        if self.sqlite:
            self._run("BEGIN IMMEDIATE")
        [(provider_id, generation)] = self._run(LOCK, provider)
        inventories = self._run(INVENTORY, provider_id)
        assert all((used or 0) + 1 <= (total - reserved) * ratio for _, total, reserved, ratio, *_, used in inventories)
        assert not self._run(CONSUMER, consumer)
        self._run(RAISE, provider_id, generation)
        self._run(NEW_CONSUMER, consumer)
        self._run(NEW_ALLOCATIONS, *(value for name in CLASSES for value in (provider_id, consumer, name)))
        self._run(FEED, self.writer, self.seq, provider_id)
        self.db.commit()


def _engine(url: str) -> sa.Engine:
    engine = sa.create_engine(url, poolclass=NullPool)
    if engine.dialect.name == "sqlite":
        with engine.connect() as db:
            db.exec_driver_sql("PRAGMA journal_mode = WAL")
    return engine


def client(url: str, providers: list[str], start: Any, seconds: float, counts: Any) -> None:
    """Claim for some seconds once all clients are ready, and put the number of claims into ``done``."""
    claimer = Claimer(url)
    claims = 0
    start.wait()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        claimer.claim(providers[claims % len(providers)])
        claims += 1
    counts.put(claims)


def measure(url: str, clients: int, shared: bool, seconds: float) -> float:
    """Return the claims per second of all clients together."""
    engine = _engine(url)
    providers = prepare(engine, 1 if shared else 2 * clients)
    try:
        processes = multiprocessing.get_context("spawn")
        start, counts = processes.Barrier(clients), processes.SimpleQueue()
        started = []
        for number in range(clients):
            providers_of_client = providers if shared else providers[2 * number : 2 * number + 2]
            started.append(
                processes.Process(target=client, args=(url, providers_of_client, start, seconds, counts), daemon=True)
            )
            started[-1].start()
        for process in started:
            process.join(seconds + 60)
        if any(process.exitcode != 0 for process in started):
            raise SystemExit("a client did not finish")
        return float(sum(counts.get() for _ in started)) / seconds
    finally:
        tables.metadata.drop_all(engine)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", metavar="DATABASE_URL")
    parser.add_argument("--clients", type=int, default=8, help="number of clients of the runs after the first one")
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    for clients, shared in ((1, False), (arguments.clients, False), (arguments.clients, True)):
        rate = measure(arguments.url, clients, shared, arguments.seconds)
        spread = "all on one provider" if shared else "each on its own providers"
        print(f"{clients} client{'s, ' + spread if clients > 1 else ''}: {rate:,.0f} claims/s", flush=True)


if __name__ == "__main__":
    main()
