#!/usr/bin/env python3
"""Fill a cloud from empty to nearly full: clients find candidates and claim them.

    python bench/until_full.py [--hosts 10000] [--clients 4] [--until 0.95] [--workers 2] [--database mariadb]

A private database server gets hosts of one kind, and this project serves them under uWSGI.  Every client asks for an
eighth or a quarter of a host, with limit=10, and claims one of the candidates.  For each tenth of the capacity the
report has the latency of searches and claims, the number of refused claims, and the rate of searches with a claim: a
service that tries the hosts one by one becomes slower as the cloud fills up.
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

#: The number of reported stages.
_STAGES = 10


@dataclasses.dataclass
class Stage:
    """The measurements of one stage of usage."""

    searches: list[float] = dataclasses.field(default_factory=list)
    claims: list[float] = dataclasses.field(default_factory=list)
    refused: collections.Counter[int | str] = dataclasses.field(default_factory=collections.Counter)
    began: float = math.inf
    ended: float = 0.0

    def line(self) -> str:
        """Return the line of the report, in milliseconds."""
        rate = len(self.claims) / (self.ended - self.began)
        others = ", ".join(f"{count} x {status}" for status, count in sorted(self.refused.items(), key=str)) or "none"
        return f"{_spread(self.searches)}   {_spread(self.claims)}   {rate:8.1f}/s   not 204: {others}"


def _spread(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return "  ".join(f"{1000 * ordered[int(len(ordered) * share)]:8.2f}" for share in (0.5, 0.99))


class Cloud:
    """The usage of the cloud, and the measurements by stage."""

    def __init__(self, hosts: int, until: float) -> None:
        self._hosts, self._until = hosts, until
        self._taken = 0.0
        self.stages = [Stage() for _ in range(_STAGES)]

    @property
    def full(self) -> bool:
        """Whether the usage has reached its target."""
        return self._taken >= self._until * self._hosts

    def clients(self, server: load.Server, count: int) -> Iterator[load.Client]:
        """Return clients that find and claim until the cloud is full."""
        return (self._client(server, random.Random(number)) for number in range(count))

    def _client(self, server: load.Server, chance: random.Random) -> load.Client:
        while not self.full:
            stage = self.stages[min(int(self._taken / self._hosts * _STAGES), _STAGES - 1)]
            share = chance.choice((0.125, 0.25))
            began = time.perf_counter()
            stage.began = min(stage.began, began)
            answer = yield server.request("GET", f"/allocation_candidates?resources={_part_of_a_host(share)}&limit=10")
            found = json.loads(answer.body)["allocation_requests"]
            searched = time.perf_counter()
            stage.searches.append(searched - began)
            if not found:
                # The free capacity of every host is too small for this request.
                stage.refused["nothing found"] += 1
                continue
            body = {**chance.choice(found), **candidates.OWNER}
            answer = yield server.request("PUT", f"/allocations/{claims.new_uuid()}", body)
            stage.ended = time.perf_counter()
            stage.claims.append(stage.ended - searched)
            if answer.status == 204:
                self._taken += share
            else:
                stage.refused[answer.status] += 1


def _part_of_a_host(share: float) -> str:
    (host,) = fill.TOPOLOGIES["flat"]
    amounts = {name: int(total * ratio * share) for name, (total, ratio) in host.inventory.items()}
    return ",".join(f"{name}:{amount}" for name, amount in amounts.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--until", type=float, default=0.95, help="the fraction of the capacity to be used at the end")
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
        search = f"/allocation_candidates?resources={_part_of_a_host(0.25)}&limit=1"
        load.run(server, [claims.reader(server, search) for _ in range(4 * arguments.workers)], 0)
        load.run(server, cloud.clients(server, arguments.clients), math.inf)
    print(f"{'':11}{'search, p50, p99':>21}{'claim, p50, p99':>21}  (milliseconds)")
    for number, stage in enumerate(cloud.stages):
        if stage.claims:
            print(f"{number / _STAGES:4.0%} - {(number + 1) / _STAGES:4.0%}{stage.line()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
