#!/usr/bin/env python3
"""Measure the index: time and memory to load it, and time to refresh it.

    python bench/index.py DATABASE_URL [--writers 16 200] [--repeat 300]

The database should be filled by ``fill.py`` and have no running service.  The script measures the load of a new index.
For each number of feed writers, it measures a refresh without changes, after a claim by another connection, and after
a change of an inventory.  Consumers and writers are not removed.

Each line shows the 10th percentile, the median and the 99th percentile of the repetitions, and the median processor
time of this process, which depends less on other load.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from placement.db import feed
from placement.db.database import Database
from placement.db.schema import tables
from placement.db.writes.transaction import Transaction
from placement.index.live import LiveIndex
from placement.index.slots import SlotSet
from placement.index.snapshot import Snapshot
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests.made import opened


@dataclasses.dataclass(frozen=True)
class Duration:
    """Wall-clock seconds, and processor seconds of this process."""

    wall: float
    processor: float


def duration_of(work: Callable[[], object]) -> Duration:
    """Return the duration of a call."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Duration(time.perf_counter() - wall, time.process_time() - processor)


def memory() -> tuple[int, int]:
    """Return the resident memory of this process in mebibytes, current and peak."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    sizes = {words[0]: int(words[1]) // 1024 for words in lines if words and words[0] in ("VmRSS:", "VmHWM:")}
    return sizes["VmRSS:"], sizes["VmHWM:"]


def show(title: str, durations: Sequence[Duration]) -> None:
    """Print one line of the result."""
    wall = sorted(1000 * duration.wall for duration in durations)
    processor = statistics.median(1000 * duration.processor for duration in durations)
    percentiles = [wall[len(wall) * percent // 100] for percent in (10, 50, 99)]
    print(f"{title:<44}" + "".join(f"{figure:9.2f} ms" for figure in (*percentiles, processor)), flush=True)


def add_writers(database: Database, count: int) -> int:
    """Add feed writers up to ``count``, each with a change of no provider; return the number of writers."""
    with database.engine.begin() as db:
        present = db.execute(sa.select(sa.func.count()).select_from(tables.change_writers)).scalar_one()
        for _ in range(count - present):
            key = db.execute(sa.insert(tables.change_writers)).inserted_primary_key
            assert key is not None
            change = {"provider_id": feed.NO_PROVIDER, "what": feed.NAMES}
            db.execute(sa.insert(tables.provider_changes).values(writer_id=key[0], seq=1, **change))
    return max(count, present)


def hosts(snapshot: Snapshot) -> list[str]:
    """Return the uuids of up to 1,000 providers that have VCPU."""
    column = snapshot.column("VCPU")
    if column is None:
        raise SystemExit("no provider has VCPU: fill the database with bench/fill.py")
    slots = column.fitting_slots(1, SlotSet.dense(snapshot.forest.alive)).slots()
    return [snapshot.provider(int(slot)).uuid for slot in random.Random(1).sample(list(slots), min(1000, len(slots)))]


def claim(database: Database, host: str) -> None:
    """Claim one VCPU of a host for a new consumer."""
    owner = Owner("bench", "bench")
    database.write(lambda db: ClaimSet(db, [Claim(str(uuid.uuid4()), {host: {"VCPU": 1}}, owner)]).place())


def add_vcpu(database: Database, host: str) -> None:
    """Increase the VCPU of a host by one."""

    def work(db: Transaction) -> None:
        provider = LockedProvider.lock(db, host)
        before = Inventory.get(db, provider.record, "VCPU")
        provider.update_inventory(dataclasses.replace(before, total=before.total + 1))

    database.write(work)


def refreshes(live_index: LiveIndex, repeat: int, before: Callable[[], object] = lambda: None) -> list[Duration]:
    """Return the duration of each refresh; ``before`` is called before each one and is not measured."""
    durations = []
    for _ in range(repeat):
        before()
        durations.append(duration_of(live_index.current))
    return durations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", metavar="DATABASE_URL")
    parser.add_argument("--writers", type=int, nargs="*", default=[16, 200])
    parser.add_argument("--repeat", type=int, default=300)
    arguments = parser.parse_args()
    with opened(arguments.url) as database, opened(arguments.url) as other:
        database.read(lambda db: db.execute(sa.select(1)))
        before, _ = memory()
        live_index = LiveIndex(database)
        print(f"{'':<44}{'p10':>12}{'median':>12}{'p99':>12}{'processor':>12}")
        duration = duration_of(live_index.current)
        loaded, peak = memory()
        count = len(live_index.current())
        show(f"load {count:,} providers", [duration])
        print(f"memory: {before} MB before, {loaded} MB with the index, {peak} MB at most while it was loaded")
        chosen = hosts(live_index.current())
        turn = iter(chosen * arguments.repeat)
        for writers in arguments.writers:
            present = add_writers(other, writers)
            live_index.current()
            show(f"refresh without changes, {present} writers", refreshes(live_index, arguments.repeat))
            show(
                "  after a claim by another connection",
                refreshes(live_index, arguments.repeat, lambda: claim(other, next(turn))),
            )
            show("  after a change of an inventory", refreshes(live_index, 50, lambda: add_vcpu(other, next(turn))))


if __name__ == "__main__":
    main()
