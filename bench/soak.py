#!/usr/bin/env python3
"""Half an hour of everything at once, with trouble in between, and what must hold throughout.

    python bench/soak.py [--minutes 30] [--hosts 2000] [--workers 2] [--database mariadb]

A private database server and this project under uWSGI serve tenants (find, claim, look, move, give back), operators
(inventories, traits, aggregates, providers that come and go) and readers.  In the first half the service is reloaded
again and again; all the time the database server is restarted now and then, in order or by SIGKILL.

Watched are:

- the answers: never a 5xx, but 503 while the database is away; never a request without an answer;
- the books: after every slice of the run no inventory is used beyond its capacity, no consumer is without allocations,
  no allocation without a consumer, and no row refers to nobody;
- the memory of the workers, from the last reload on, and their connections to the database.

Ends with 1 if something did not hold.
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

from placement.db import tables
from placement.db.dialects import normalise
from tests import servers
from tests.load.soundness import flaws

SLICE = 10.0  # seconds
#: Seconds after its return for which the database may still be found away: by who was just about to be told so.
_GRACE = 5.0
#: How much of what workers take after their last reload they may take more in the end, and how much is no growth.
_GROWTH, _NOISE_MB = 1.10, 10.0
CLASSES = {"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 40}
OWNER = {"project_id": "soak", "user_id": "soak", "consumer_type": "INSTANCE"}
TRAITS = ("CUSTOM_SOAK_A", "CUSTOM_SOAK_B", "CUSTOM_SOAK_C")

Asking = Iterator[Any]


class Trouble:
    """When the database was away."""

    def __init__(self) -> None:
        self.away = False
        self._back = 0.0

    @contextlib.contextmanager
    def now(self) -> Iterator[None]:
        """The database goes away and comes back."""
        self.away = True
        try:
            yield
        finally:
            self._back, self.away = time.monotonic(), False

    def excuses(self, began: float) -> bool:
        """Whether a request that began then may have found no database."""
        return self.away or began < self._back + _GRACE


class Crowd:
    """The clients, and what they saw."""

    def __init__(self, server: load.Server, hosts: list[str], trouble: Trouble) -> None:
        self.server, self._hosts, self._trouble = server, hosts, trouble
        self.statuses: collections.Counter[tuple[str, int]] = collections.Counter()
        self.faults: collections.Counter[str] = collections.Counter()
        #: Consumers that their tenants have not given back yet.
        self._held: list[str] = []

    def clients(self, seed: int) -> list[load.Client]:
        """One slice's worth of them."""
        roles = [self._tenant] * 5 + [self._operator, self._shaper, self._reader]
        return [self._client(role, random.Random(seed * 100 + number)) for number, role in enumerate(roles)]

    def _client(self, who: Callable[[random.Random], Asking], chance: random.Random) -> load.Client:
        """Plays a role over and over; roles yield (method, path, body) and are sent the JSON of the answer, or None."""
        while True:
            role = who(chance)
            asked = next(role)
            while True:
                began = time.monotonic()
                answer = yield self.server.request(*asked)
                self._note(asked, answer, began)
                ok = 200 <= answer.status < 300
                try:
                    asked = role.send((json.loads(answer.body) if answer.body else {}) if ok else None)
                except StopIteration:
                    break

    def _note(self, asked: tuple[str, str, Any], answer: load.Answer, began: float) -> None:
        kind = f"{asked[0]} /{asked[1].split('?')[0].split('/')[1]}"
        self.statuses[kind, answer.status] += 1
        if answer.status == 503 and self._trouble.excuses(began):
            return
        if answer.status == load.LOST or answer.status >= 500 or answer.status in (400, 405, 406, 415):
            self.faults[f"{kind} answered {answer.status or 'nothing'}: {answer.body[:300].decode()}"] += 1

    # --- roles ---

    def _tenant(self, chance: random.Random) -> Asking:
        """Finds a place and takes it, perhaps moves, and gives back what is oldest, so that the cloud never fills."""
        amounts = ",".join(f"{name}:{amount * chance.choice((1, 2, 4))}" for name, amount in CLASSES.items())
        more = chance.choice(("", f"&required={fill.TRAIT}", f"&member_of={fill.aggregate('zone-1')}"))
        found = yield "GET", f"/allocation_candidates?resources={amounts}{more}&limit={chance.choice((10, 1000))}", None
        if not found or not found["allocation_requests"]:
            return
        place = chance.choice(found["allocation_requests"])
        consumer = claims.new_uuid()
        if (yield "PUT", f"/allocations/{consumer}", {**place, **OWNER, "consumer_generation": None}) is not None:
            self._held.append(consumer)
        if chance.random() < 0.3:
            yield from self._move(consumer, place, chance)
        while len(self._held) > 3 * len(self._hosts):
            yield "DELETE", f"/allocations/{self._held.pop(0)}", None

    def _move(self, consumer: str, place: dict[str, Any], chance: random.Random) -> Asking:
        shown = yield "GET", f"/allocations/{consumer}", None
        if not shown or not shown["allocations"]:
            return
        (resources,) = {json.dumps(each["resources"]) for each in shown["allocations"].values()}
        target = {chance.choice(self._hosts): {"resources": json.loads(resources)}}
        migration = {"allocations": place["allocations"], **OWNER, "consumer_generation": None}
        moved = {"allocations": target, **OWNER, "consumer_generation": shown["consumer_generation"]}
        mover = claims.new_uuid()
        if (yield "POST", "/allocations", {consumer: moved, mover: migration}) is not None:
            yield "DELETE", f"/allocations/{mover}", None

    def _operator(self, chance: random.Random) -> Asking:
        """A host gets one more of something; never less, or it would be used beyond its capacity by our own doing."""
        path = f"/resource_providers/{chance.choice(self._hosts)}/inventories"
        shown = yield "GET", path, None
        if shown:
            shown["inventories"]["DISK_GB"]["total"] += 1
            yield "PUT", path, shown
        yield "GET", path.replace("inventories", "usages"), None

    def _shaper(self, chance: random.Random) -> Asking:
        """Traits and aggregates change; a child comes and goes."""
        host = f"/resource_providers/{chance.choice(self._hosts)}"
        trait = chance.choice(TRAITS)
        yield "PUT", f"/traits/{trait}", None
        if shown := (yield "GET", f"{host}/traits", None):
            shown["traits"] = sorted({*shown["traits"]} ^ {trait})
            yield "PUT", f"{host}/traits", shown
        if shown := (yield "GET", f"{host}/aggregates", None):
            shown["aggregates"] = sorted({*shown["aggregates"]} ^ {fill.aggregate("soak")})
            yield "PUT", f"{host}/aggregates", shown
        child = claims.new_uuid()
        body = {"name": child, "uuid": child, "parent_provider_uuid": host.rsplit("/", 1)[1]}
        made = yield "POST", "/resource_providers", body
        if made is not None:
            inventory = {"VGPU": {"total": 4}}
            body = {"resource_provider_generation": 0, "inventories": inventory}
            yield "PUT", f"/resource_providers/{child}/inventories", body
            yield "DELETE", f"/resource_providers/{child}", None

    def _reader(self, chance: random.Random) -> Asking:
        yield "GET", "/usages?project_id=soak", None
        yield "GET", f"/resource_providers?member_of={fill.aggregate('zone-2')}&resources=VCPU:4", None
        yield "GET", f"/resource_providers/{chance.choice(self._hosts)}/allocations", None
        yield "GET", "/allocation_candidates?resources=VCPU:2&resources_g=VGPU:1&group_policy=none", None


@dataclasses.dataclass(frozen=True)
class Sample:
    """The service after a slice."""

    megabytes: float
    connections: int


class Watch:
    """Looks at the database and the processes from outside."""

    def __init__(self, url: str, pid: int) -> None:
        self._engine = sa.create_engine(normalise(url), poolclass=sa.NullPool)
        self._pid = pid

    def wrongs(self) -> list[str]:
        """What the database says that it must never say."""
        return [f"{flaw}: {rows}" for flaw, rows in flaws(self._engine).items()]

    def hosts(self) -> list[str]:
        with self._engine.connect() as db:
            return list(db.execute(sa.select(tables.resource_providers.c.uuid)).scalars())

    def sample(self) -> Sample:
        """Taken while the workers rest."""
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
    """Memory that is the process's own, or its share of what it has in common with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def soak(arguments: argparse.Namespace, database: servers.ServerProcess) -> list[str]:
    """Whatever did not hold."""
    url = database.create_database()
    service = serve_pair.start_ours(url, arguments.workers)
    fill.fill(url, "flat", arguments.hosts)
    watch, trouble = Watch(url, service.pid), Trouble()
    crowd = Crowd(claims.reached(service.url, "admin"), watch.hosts(), trouble)
    slices = int(arguments.minutes * 60 / SLICE)
    samples: dict[int, Sample] = {}
    wrongs: list[str] = []
    for number in range(slices):
        mischief = threading.Thread(target=_mischief, args=(number, slices, database, service.pid, trouble))
        mischief.start()
        load.run(crowd.server, crowd.clients(number), SLICE)
        mischief.join()
        wrongs += [f"after {(number + 1) * SLICE:.0f} s: {wrong}" for wrong in watch.wrongs()]
        samples[number] = watch.sample()
        if number % 6 == 5:
            done, total = samples[number], crowd.statuses.total()
            print(
                f"{(number + 1) * SLICE / 60:4.0f} min: {total:9,} requests, {done.megabytes:6.0f} MB in workers, "
                f"{done.connections} connections, {sum(crowd.faults.values())} faults, {len(wrongs)} wrongs",
                flush=True,
            )
    for (kind, status), count in sorted(crowd.statuses.items()):
        print(f"  {kind:<28} {status or 'lost'}  {count:,}")
    return [f"{count} x {fault}" for fault, count in crowd.faults.items()] + wrongs + _grown(samples, slices)


def _mischief(number: int, slices: int, database: servers.ServerProcess, master: int, trouble: Trouble) -> None:
    """What befalls the service in this slice, some seconds into it."""
    time.sleep(SLICE / 4)
    if number % 15 == 7:
        with trouble.now():
            database.stop() if number % 2 else database.kill()
            time.sleep(1)
            database.start()
    elif number % 15 == 14 and number < slices / 2:
        os.kill(master, signal.SIGHUP)


def _grown(samples: dict[int, Sample], slices: int) -> list[str]:
    """Whether memory or connections grew in the second half, in which nothing is reloaded."""
    half = [samples[number] for number in range(slices // 2 + 1, slices)]
    third = max(1, len(half) // 3)
    early, late = half[:third], half[-third:]
    grown = []
    megabytes = [statistics.median(sample.megabytes for sample in part) for part in (early, late)]
    print(f"memory of the workers after the last reload: {megabytes[0]:.0f} MB, in the end {megabytes[1]:.0f} MB")
    if megabytes[1] > megabytes[0] * _GROWTH + _NOISE_MB:
        grown.append(f"memory grew from {megabytes[0]:.0f} MB to {megabytes[1]:.0f} MB")
    connections = [max(sample.connections for sample in part) for part in (early, late)]
    print(f"connections, at most: {connections[0]}, in the end {connections[1]}")
    if connections[1] > connections[0]:
        grown.append(f"connections grew from {connections[0]} to {connections[1]}")
    return grown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2, help="processes of the service")
    parser.add_argument("--database", choices=["mariadb", "postgresql"], default="mariadb")
    arguments = parser.parse_args()
    print(f"machine: {claims.machine()}")
    with serve_pair.database_server(arguments.database) as database:
        complaints = soak(arguments, database)
    print("\n".join(complaints) or "everything held")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
