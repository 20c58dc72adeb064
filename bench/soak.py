#!/usr/bin/env python3
"""Run a mixed load for half an hour with reloads and database restarts, and check invariants.

    python bench/soak.py [--minutes 30] [--hosts 2000] [--workers 2] [--database mariadb]

A private database server and this project under uWSGI serve tenants (find, claim, read, move, release), operators
(inventories, traits, aggregates, creating and deleting providers) and readers.  In the first half the service is
reloaded repeatedly; throughout the run the database server is stopped or killed and restarted at intervals.

It checks:

- the responses: no 5xx except 503 while the database is down; a response to each request;
- the database: after every minute of the run no inventory is over-committed, no consumer is without allocations, no
  allocation is without a consumer, and no reference is dangling;
- the memory of the workers after the last reload, and their connections to the database.

For each kind of request the output contains the median, the 99th percentile and the maximum of the time of its
successful requests, outages and reloads included.

The exit code is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import claims
import fill
import load
import serve_pair

from placement.db.engine.dialects import normalise
from placement.db.schema import tables
from tests import servers
from tests.load.soundness import flaws_of_rows

SLICE = 10.0  # seconds
#: Seconds after the restart of the database for which 503 is still accepted, for requests already in progress.
_GRACE = 5.0
#: The factor by which the memory of workers may grow after the last reload, and a tolerance in megabytes.
_GROWTH, _NOISE_MB = 1.10, 10.0
CLASSES = {"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 40}
OWNER = {"project_id": "soak", "user_id": "soak", "consumer_type": "INSTANCE"}
TRAITS = ("CUSTOM_SOAK_A", "CUSTOM_SOAK_B", "CUSTOM_SOAK_C")

Role = Iterator[Any]


class Outages:
    """A record of the outages of the database."""

    def __init__(self) -> None:
        self.down = False
        self._back = 0.0

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """Mark the database as down inside the context."""
        self.down = True
        try:
            yield
        finally:
            self._back, self.down = time.monotonic(), False

    def explains_503(self, began: float) -> bool:
        """Whether 503 is a valid response to a request that began at this time."""
        return self.down or began < self._back + _GRACE


class Crowd:
    """The clients, and the statuses and faults of their responses."""

    def __init__(self, server: load.Server, hosts: list[str], outages: Outages) -> None:
        self.server, self._hosts, self._outages = server, hosts, outages
        self.statuses: collections.Counter[tuple[str, int]] = collections.Counter()
        #: Seconds of the successful requests, by kind.
        self.seconds: collections.defaultdict[str, list[float]] = collections.defaultdict(list)
        self.faults: collections.Counter[str] = collections.Counter()
        #: Consumers that have not been released yet.
        self._held: list[str] = []

    def clients(self, seed: int) -> list[load.Client]:
        """Return the clients of one slice."""
        roles = [self._tenant] * 5 + [self._operator, self._shaper, self._reader]
        return [self._client(role, random.Random(seed * 100 + number)) for number, role in enumerate(roles)]

    def _client(self, role: Callable[[random.Random], Role], chance: random.Random) -> load.Client:
        """Repeat a role, which yields (method, path, body) and is sent the JSON of the response, None for an error."""
        while True:
            requests = role(chance)
            request = next(requests)
            while True:
                began = time.monotonic()
                answer = yield self.server.request(*request)
                self._note(request, answer, began)
                ok = 200 <= answer.status < 300
                try:
                    request = requests.send((json.loads(answer.body) if answer.body else {}) if ok else None)
                except StopIteration:
                    break

    def _note(self, request: tuple[str, str, Any], answer: load.Answer, began: float) -> None:
        path, _, query = request[1].partition("?")
        limit = query.partition("&limit=")[2]
        kind = f"{request[0]} /{path.split('/')[1]}" + (f" limit={limit}" if limit else "")
        self.statuses[kind, answer.status] += 1
        if 200 <= answer.status < 300:
            self.seconds[kind].append(time.monotonic() - began)
        if answer.status == 503 and self._outages.explains_503(began):
            return
        if answer.status == load.LOST or answer.status >= 500 or answer.status in (400, 405, 406, 415):
            self.faults[f"{kind} returned {answer.status or 'nothing'}: {answer.body[:300].decode()}"] += 1

    # --- roles ---

    def _tenant(self, chance: random.Random) -> Role:
        """Find and claim, sometimes move, and release the oldest consumers so that the cloud does not fill up."""
        amounts = ",".join(f"{name}:{amount * chance.choice((1, 2, 4))}" for name, amount in CLASSES.items())
        more = chance.choice(("", f"&required={fill.TRAIT}", f"&member_of={fill.aggregate('zone-1')}"))
        limit = chance.choice((10, 1000))
        result = yield "GET", f"/allocation_candidates?resources={amounts}{more}&limit={limit}", None
        if not result or not result["allocation_requests"]:
            return
        place = chance.choice(result["allocation_requests"])
        consumer = claims.new_uuid()
        if (yield "PUT", f"/allocations/{consumer}", {**place, **OWNER, "consumer_generation": None}) is not None:
            self._held.append(consumer)
        if chance.random() < 0.3:
            yield from self._move(consumer, place, chance)
        while len(self._held) > 3 * len(self._hosts):
            yield "DELETE", f"/allocations/{self._held.pop(0)}", None

    def _move(self, consumer: str, place: dict[str, Any], chance: random.Random) -> Role:
        holding = yield "GET", f"/allocations/{consumer}", None
        if not holding or not holding["allocations"]:
            return
        (resources,) = {json.dumps(allocation["resources"]) for allocation in holding["allocations"].values()}
        target = {chance.choice(self._hosts): {"resources": json.loads(resources)}}
        migration = {"allocations": place["allocations"], **OWNER, "consumer_generation": None}
        moved = {"allocations": target, **OWNER, "consumer_generation": holding["consumer_generation"]}
        mover = claims.new_uuid()
        if (yield "POST", "/allocations", {consumer: moved, mover: migration}) is not None:
            yield "DELETE", f"/allocations/{mover}", None

    def _operator(self, chance: random.Random) -> Role:
        """Increase an inventory of a host; a decrease could cause over-commitment."""
        path = f"/resource_providers/{chance.choice(self._hosts)}/inventories"
        document = yield "GET", path, None
        if document:
            document["inventories"]["DISK_GB"]["total"] += 1
            yield "PUT", path, document
        yield "GET", path.replace("inventories", "usages"), None

    def _shaper(self, chance: random.Random) -> Role:
        """Change traits and aggregates of a host; create and delete a child."""
        host = f"/resource_providers/{chance.choice(self._hosts)}"
        trait = chance.choice(TRAITS)
        yield "PUT", f"/traits/{trait}", None
        if document := (yield "GET", f"{host}/traits", None):
            document["traits"] = sorted({*document["traits"]} ^ {trait})
            yield "PUT", f"{host}/traits", document
        if document := (yield "GET", f"{host}/aggregates", None):
            document["aggregates"] = sorted({*document["aggregates"]} ^ {fill.aggregate("soak")})
            yield "PUT", f"{host}/aggregates", document
        child = claims.new_uuid()
        body = {"name": child, "uuid": child, "parent_provider_uuid": host.rsplit("/", 1)[1]}
        created = yield "POST", "/resource_providers", body
        if created is not None:
            inventory = {"VGPU": {"total": 4}}
            body = {"resource_provider_generation": 0, "inventories": inventory}
            yield "PUT", f"/resource_providers/{child}/inventories", body
            yield "DELETE", f"/resource_providers/{child}", None

    def _reader(self, chance: random.Random) -> Role:
        yield "GET", "/usages?project_id=soak", None
        yield "GET", f"/resource_providers?member_of={fill.aggregate('rack-0')}&resources=VCPU:4", None
        yield "GET", f"/resource_providers/{chance.choice(self._hosts)}/allocations", None
        yield "GET", "/allocation_candidates?resources=VCPU:2&resources_g=VGPU:1&group_policy=none", None


@dataclasses.dataclass(frozen=True)
class Sample:
    """The memory and the database connections of the service after a slice."""

    megabytes: float
    connections: int


class Watch:
    """Direct access to the database and the processes, to check and measure them."""

    def __init__(self, url: str, pid: int) -> None:
        self._engine = sa.create_engine(normalise(url), poolclass=sa.NullPool)
        self._pid = pid

    def broken_invariants(self) -> list[str]:
        """Return the violated invariants, as sentences."""
        return [f"{flaw}: {rows}" for flaw, rows in flaws_of_rows(self._engine).items()]

    def hosts(self) -> list[str]:
        with self._engine.connect() as db:
            return list(db.execute(sa.select(tables.resource_providers.c.uuid)).scalars())

    def sample(self) -> Sample:
        """Measure the service, while no requests are in progress."""
        with self._engine.connect() as db:
            connections = db.execute(_CONNECTIONS[db.dialect.name]).scalar_one() - 1
        return Sample(sum(map(_megabytes, _workers(self._pid))), connections)


_CONNECTIONS = {
    "mysql": sa.text("SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()"),
    "postgresql": sa.text("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"),
}


def _workers(master: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{master}/task/{master}/children").read_text().split()]


def _megabytes(pid: int) -> float:
    """Return the proportional set size of a process, in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def soak(arguments: argparse.Namespace, database: servers.ServerProcess) -> list[str]:
    """Run the load, and return the failed checks."""
    url = database.create_database()
    service = serve_pair.start_ours(url, arguments.workers)
    fill.fill(url, "flat", arguments.hosts)
    watch, outages = Watch(url, service.pid), Outages()
    crowd = Crowd(claims.connect(service.url, "admin"), watch.hosts(), outages)
    slices = max(1, int(arguments.minutes * 60 / SLICE))
    samples: dict[int, Sample] = {}
    broken_invariants: list[str] = []
    for number in range(slices):
        disturbance = threading.Thread(target=_disturb, args=(number, slices, database, service.pid, outages))
        disturbance.start()
        load.run(crowd.server, crowd.clients(number), SLICE)
        disturbance.join()
        samples[number] = watch.sample()
        if number % 6 == 5 or number == slices - 1:
            time_of_check = f"after {(number + 1) * SLICE:.0f} s"
            broken_invariants += [f"{time_of_check}: {invariant}" for invariant in watch.broken_invariants()]
            sample, total = samples[number], crowd.statuses.total()
            print(
                f"{(number + 1) * SLICE / 60:4.0f} min: {total:9,} requests, {sample.megabytes:6.0f} MB in workers, "
                f"{sample.connections} connections, {sum(crowd.faults.values())} faults, "
                f"{len(broken_invariants)} broken invariants",
                flush=True,
            )
    for (kind, status), count in sorted(crowd.statuses.items()):
        print(f"  {kind:<38} {status or 'lost'}  {count:,}")
    for kind, seconds in sorted(crowd.seconds.items()):
        seconds.sort()
        figures = [seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100], seconds[-1]]
        print(f"  {kind:<38} " + ", ".join(f"{1000 * figure:.1f}" for figure in figures) + " ms")
    return [f"{count} x {fault}" for fault, count in crowd.faults.items()] + broken_invariants + _grown(samples, slices)


def _disturb(number: int, slices: int, database: servers.ServerProcess, master: int, outages: Outages) -> None:
    """Restart the database or reload the service in some of the slices, after a quarter of the slice."""
    time.sleep(SLICE / 4)
    if number % 15 == 7:
        with outages.outage():
            database.stop() if number % 2 else database.kill()
            time.sleep(1)
            database.start()
    elif number % 15 == 14 and number < slices / 2:
        os.kill(master, signal.SIGHUP)


def _grown(samples: dict[int, Sample], slices: int) -> list[str]:
    """Return sentences about growth of memory or connections in the second half, which has no reloads."""
    # Only the last slice, if the run is too short for a second half.
    half = [samples[number] for number in range(min(slices // 2 + 1, slices - 1), slices)]
    third = max(1, len(half) // 3)
    first, last = half[:third], half[-third:]
    grown = []
    megabytes = [statistics.median(sample.megabytes for sample in part) for part in (first, last)]
    print(f"memory of the workers after the last reload: {megabytes[0]:.0f} MB, at the end: {megabytes[1]:.0f} MB")
    if megabytes[1] > megabytes[0] * _GROWTH + _NOISE_MB:
        grown.append(f"memory grew from {megabytes[0]:.0f} MB to {megabytes[1]:.0f} MB")
    connections = [max(sample.connections for sample in part) for part in (first, last)]
    print(f"connections at most: {connections[0]}, at the end: {connections[1]}")
    if connections[1] > connections[0]:
        grown.append(f"connections grew from {connections[0]} to {connections[1]}")
    return grown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2, help="number of processes of the service")
    parser.add_argument("--database", choices=["mariadb", "postgresql"], default="mariadb")
    arguments = parser.parse_args()
    print(f"machine: {claims.machine()}")
    with serve_pair.database_server(arguments.database) as database:
        failed_checks = soak(arguments, database)
    print("\n".join(failed_checks) or "all checks passed")
    return bool(failed_checks)


if __name__ == "__main__":
    sys.exit(main())
