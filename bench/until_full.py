#!/usr/bin/env python3
"""A cloud from empty to nearly full: clients look for a place and claim it, until there is hardly any left.

    python bench/until_full.py [--hosts 10000] [--clients 4] [--until 0.95] [--workers 2] [--database mariadb]

A private database server gets so many hosts of one kind, and this project serves them under uWSGI.  Every client asks
for an instance of an eighth or a quarter of a host, with limit=10, and claims one of the places found.  Told are, for
each part of the way, how long searches and claims took, how many claims came too late, and the rate of searches with a
claim: a service that searches by trying hosts in turn gets slower the fuller the cloud is.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import candidates
import claims
import fill
import load
import serve_pair

#: The parts of the way that are told of.
_PARTS = 10


@dataclasses.dataclass
class Part:
    """What happened while the cloud was in one part of its way."""

    searches: list[float] = dataclasses.field(default_factory=list)
    claims: list[float] = dataclasses.field(default_factory=list)
    refused: collections.Counter[int | str] = dataclasses.field(default_factory=collections.Counter)
    began: float = math.inf
    ended: float = 0.0

    def line(self) -> str:
        """In milliseconds."""
        rate = len(self.claims) / (self.ended - self.began)
        others = ", ".join(f"{count} x {status}" for status, count in sorted(self.refused.items(), key=str)) or "none"
        return f"{_spread(self.searches)}   {_spread(self.claims)}   {rate:8.1f}/s   not 204: {others}"


def _spread(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return "  ".join(f"{1000 * ordered[int(len(ordered) * share)]:8.2f}" for share in (0.5, 0.99))


class Cloud:
    """How full it is, and what was seen on the way."""

    def __init__(self, hosts: int, until: float) -> None:
        self._hosts, self._until = hosts, until
        self._taken = 0.0
        self.parts = [Part() for _ in range(_PARTS)]

    @property
    def full(self) -> bool:
        """Whether it is as full as it is meant to get."""
        return self._taken >= self._until * self._hosts

    def clients(self, server: load.Server, count: int) -> Iterator[load.Client]:
        """Clients that take what they find until it is full."""
        return (self._client(server, random.Random(number)) for number in range(count))

    def _client(self, server: load.Server, chance: random.Random) -> load.Client:
        while not self.full:
            part = self.parts[min(int(self._taken / self._hosts * _PARTS), _PARTS - 1)]
            share = chance.choice((0.125, 0.25))
            began = time.perf_counter()
            part.began = min(part.began, began)
            answer = yield server.request("GET", f"/allocation_candidates?resources={_part_of_a_host(share)}&limit=10")
            found = json.loads(answer.body)["allocation_requests"]
            searched = time.perf_counter()
            part.searches.append(searched - began)
            if not found:
                # What is left is in pieces too small for this one.
                part.refused["nothing found"] += 1
                continue
            body = {**chance.choice(found), **candidates.OWNER}
            answer = yield server.request("PUT", f"/allocations/{claims.new_uuid()}", body)
            part.ended = time.perf_counter()
            part.claims.append(part.ended - searched)
            if answer.status == 204:
                self._taken += share
            else:
                part.refused[answer.status] += 1


def _part_of_a_host(share: float) -> str:
    (host,) = fill.TOPOLOGIES["flat"]
    amounts = {name: int(total * ratio * share) for name, (total, ratio) in host.inventory.items()}
    return ",".join(f"{name}:{amount}" for name, amount in amounts.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--until", type=float, default=0.95, help="the part of all capacity that is to be used")
    parser.add_argument("--workers", type=int, default=2, help="processes of the service")
    parser.add_argument("--database", choices=["mariadb", "postgresql"], default="mariadb")
    arguments = parser.parse_args()
    print(f"machine: {claims.machine()}")
    with serve_pair.database_server(arguments.database) as database:
        url = database.create_database()
        service = serve_pair.start_ours(url, arguments.workers).url
        fill.fill(url, "flat", arguments.hosts)
        cloud = Cloud(arguments.hosts, arguments.until)
        server = claims.reached(service, "admin")
        look = f"/allocation_candidates?resources={_part_of_a_host(0.25)}&limit=1"
        load.run(server, [claims.reader(server, look) for _ in range(4 * arguments.workers)], 0)
        load.run(server, cloud.clients(server, arguments.clients), math.inf)
    print(f"{'':11}{'search, half, 99 %':>21}{'claim, half, 99 %':>21}  (milliseconds)")
    for number, part in enumerate(cloud.parts):
        if part.claims:
            print(f"{number / _PARTS:4.0%} - {(number + 1) / _PARTS:4.0%}{part.line()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
