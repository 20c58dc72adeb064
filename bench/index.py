#!/usr/bin/env python3
"""Measure the index: memory, the time until a worker responds, refreshes, and searches.

    python bench/index.py DATABASE_URL [--before DIRECTORY] [--writers 16 200] [--repeat 300]

The database should be filled by ``fill.py`` and have no running service.  A worker is a process with the application
(``index_worker.py``):

- the *first worker* begins with an empty directory for index files, and reads the database;
- the *further worker* starts while the first one runs;
- the *restarted worker* starts after both have ended, and is used for everything below.

The time of a first search begins when the application is loaded, and includes the connection to the database.  Memory
is what the first search adds to the private memory of the process.  The time of a search includes the refresh.
Claims and changes of inventories are made by another connection, one before each search.  Times are the 10th
percentile, the median, the 99th percentile and the maximum.

``--before`` names another checkout, such as ``git worktree add DIRECTORY HEAD~1``.  It is measured in the same run, in
alternation; the ratio is the median of this checkout divided by the median of the other.  Afterwards the database still
contains the added feed writers and the larger inventories.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from placement.db import feed
from placement.db.database import Database
from placement.db.schema import tables
from placement.db.writes.transaction import Transaction
from placement.index.store import default_directory
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.release import release
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests.made import opened

HERE = Path(__file__).resolve().parent
_ROUNDS = 10
_MEGABYTE = 1e6


class Search(NamedTuple):
    """Seconds of a search, and of the refresh of the index in it."""

    seconds: float
    refresh: float


class Worker:
    """A worker of a checkout, after its first search."""

    def __init__(self, tree: Path, url: str, directory: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "index_worker.py"), str(tree), url],
            env=os.environ | {"OS_PLACEMENT__INDEX_DIRECTORY": directory},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._before = self._ask("memory", 0)["private"]
        #: Seconds of the first search.
        self.first = self.search(1)[0].seconds
        #: Maximum resident memory until then, in bytes.
        self.peak = self._ask("memory", 0)["peak"]

    @property
    def private(self) -> int:
        """Private memory added since the start of the process, before its first search, in bytes."""
        return int(self._ask("memory", 0)["private"] - self._before)

    def search(self, count: int, threads: bool = False) -> list[Search]:
        """Search ``count`` times, or ``count`` times in each of four new threads at once."""
        return [Search(*seconds) for seconds in self._ask("threads" if threads else "search", count)]

    def end(self) -> None:
        self._process.communicate()

    def _ask(self, command: str, number: int) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(command, number, file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


class Start(NamedTuple):
    """Figures of the workers of a checkout, by title, and the restarted worker."""

    figures: Mapping[str, float]
    restarted: Worker


def start(tree: Path, url: str, directory: str, providers: int) -> Start:
    """Start the workers of a checkout one after the other, with an empty directory for index files."""
    first = Worker(tree, url, directory)
    further = Worker(tree, url, directory)
    file = sum(path.stat().st_size for path in Path(directory).glob("*.index"))
    figures = {
        "first search of the first worker, s": first.first,
        "first search of a further worker, s": further.first,
        "private memory of the first worker, MB": first.private / _MEGABYTE,
        "  resident while it reads, MB": first.peak / _MEGABYTE,
        "private memory of a further worker, MB": further.private / _MEGABYTE,
        "file, MB": file / _MEGABYTE,
        "  bytes per provider": file / providers,
    }
    first.end()
    further.end()
    restarted = Worker(tree, url, directory)
    return Start({**figures, "first search of a restarted worker, s": restarted.first}, restarted)


class Table:
    """The output: a column for each checkout, and one for the ratio."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._print("", titles, "ratio" if len(titles) > 1 else "")

    def show_figures(self, title: str, figures: Sequence[float]) -> None:
        self._print(title, [f"{figure:,.2f}" for figure in figures], _ratio(figures))

    def show_times(self, title: str, seconds: Sequence[Sequence[float]]) -> None:
        """Print a line about the times of each checkout."""
        texts = []
        for times in map(sorted, seconds):
            figures = [times[len(times) * percent // 100] for percent in (10, 50, 99)] + times[-1:]
            texts.append(" ".join(f"{1000 * figure:7.2f}" for figure in figures) + " ms")
        self._print(title, texts, _ratio([*map(statistics.median, seconds)]))

    def _print(self, title: str, texts: Sequence[str], ratio: str) -> None:
        print(f"{title:48}" + "".join(f"{text:>36}" for text in texts) + f"{ratio:>8}", flush=True)


def _ratio(figures: Sequence[float]) -> str:
    return f"{figures[0] / figures[1]:.3f}" if len(figures) > 1 and figures[1] else ""


class Writers:
    """Another connection to the database, which claims and changes inventories of up to 1,000 hosts."""

    def __init__(self, database: Database) -> None:
        self._database = database
        providers, inventories, classes = tables.resource_providers, tables.inventories, tables.resource_classes
        joined = providers.join(inventories, inventories.c.resource_provider_id == providers.c.id).join(
            classes, classes.c.id == inventories.c.resource_class_id
        )
        hosts = sa.select(providers.c.uuid).select_from(joined).where(classes.c.name == "VCPU").limit(1000)
        count = sa.select(sa.func.count()).select_from(providers)
        self.providers, uuids = database.read(
            lambda db: (db.execute(count).scalar(), db.execute(hosts).scalars().all())
        )
        if not uuids:
            raise SystemExit("no provider has VCPU: fill the database with bench/fill.py")
        self._hosts = itertools.cycle(uuids)
        self._consumers: list[str] = []

    def add(self, count: int) -> int:
        """Add feed writers up to ``count``, each with a change of no provider; return the number of writers."""
        with self._database.engine.begin() as db:
            present: int = db.execute(sa.select(sa.func.count()).select_from(tables.change_writers)).scalar_one()
            for _ in range(count - present):
                key = db.execute(sa.insert(tables.change_writers)).inserted_primary_key
                assert key is not None
                change = {"provider_id": feed.NO_PROVIDER, "what": feed.NAMES}
                db.execute(sa.insert(tables.provider_changes).values(writer_id=key[0], seq=1, **change))
        return max(count, present)

    def claim(self) -> None:
        """Claim one VCPU of a host for a new consumer."""
        self._consumers.append(str(uuid.uuid4()))
        claims = [Claim(self._consumers[-1], {next(self._hosts): {"VCPU": 1}}, Owner("bench", "bench"))]
        self._database.write(lambda db: ClaimSet(db, claims).place())

    def release(self) -> None:
        """Release all claims."""
        self._database.write(lambda db: release(db, self._consumers))

    def add_vcpu(self) -> None:
        """Increase the VCPU of a host by one."""
        host = next(self._hosts)

        def work(db: Transaction) -> None:
            provider = LockedProvider.lock(db, host)
            before = Inventory.get(db, provider.record, "VCPU")
            provider.update_inventory(dataclasses.replace(before, total=before.total + 1))

        self._database.write(work)


def measure(
    table: Table, title: str, workers: Sequence[Worker], repeat: int, before: Callable[[], object] | None = None
) -> None:
    """Print the times of refreshes and searches of each worker; ``before`` is called before each search."""
    searches: list[list[Search]] = [[] for _ in workers]
    for worker in workers:
        worker.search(1)
    rounds, size = (repeat, 1) if before else (_ROUNDS, max(1, repeat // _ROUNDS))
    for number in range(rounds):
        places = [*range(len(workers))]
        for place in places[number % len(places) :] + places[: number % len(places)]:
            if before:
                before()
            searches[place] += workers[place].search(size)
    table.show_times(f"refresh {title}", [[search.refresh for search in column] for column in searches])
    table.show_times("  search with limit=10", [[search.seconds for search in column] for column in searches])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", metavar="DATABASE_URL")
    parser.add_argument("--before", type=Path, metavar="DIRECTORY")
    parser.add_argument("--writers", type=int, nargs="*", default=[16, 200])
    parser.add_argument("--repeat", type=int, default=300)
    arguments = parser.parse_args()
    trees = {"this checkout": HERE.parent}
    if arguments.before:
        trees["before"] = arguments.before.resolve()
    # On the same file system as the default directory.
    with opened(arguments.url) as database, tempfile.TemporaryDirectory(dir=default_directory("").parent) as directory:
        writers = Writers(database)
        print(f"{writers.providers:,} providers")
        table = Table([*trees])
        starts = [start(tree, arguments.url, f"{directory}/{name}", writers.providers) for name, tree in trees.items()]
        for title in starts[0].figures:
            table.show_figures(title, [begun.figures[title] for begun in starts])
        workers = [begun.restarted for begun in starts]

        for title, count in (("first search of four threads", 1), ("limit=10, four threads at once", arguments.repeat)):
            searches = [worker.search(count, threads=True) for worker in workers]
            table.show_times(title, [[search.seconds for search in column] for column in searches])
        for number in arguments.writers:
            present = writers.add(number)
            measure(table, f"without changes, {present} writers", workers, arguments.repeat)
            measure(table, "after a claim", workers, arguments.repeat, writers.claim)
            measure(table, "after a change of an inventory", workers, 50, writers.add_vcpu)
        for worker in workers:
            worker.end()
        writers.release()


if __name__ == "__main__":
    main()
