#!/usr/bin/env python3
"""Fill a cloud from empty to nearly full: clients find candidates and claim them.

    python bench/until_full.py [--one-call] [--hosts 10000] [--clients 4] [--until 0.95] [--workers 2]

A private database server gets hosts of one kind, and this project serves them under uWSGI.  Every client searches for
an eighth or a quarter of a host, with limit=10, and claims one of the candidates; with --one-call the service does
both.  For each tenth of the capacity the report shows the latency of searches, claims and refusals, the number of
refused claims, and the rate of claims: a service that tries the hosts one by one becomes slower as the cloud fills up.

Nothing is released during the run.  A refusal is therefore wrong if a request that began after it claimed as much, or
if as much is free on a host at the end.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import candidates
import claims
import fill
import load
import placing_checks
import placing_requests
import serve_pair

#: The number of reported stages.
_STAGES = 10


@dataclasses.dataclass
class Stage:
    """The measurements of one stage of usage."""

    searches: list[float] = dataclasses.field(default_factory=list)
    claims: list[float] = dataclasses.field(default_factory=list)
    #: Seconds of refused requests, which include an explanation.
    refusals: list[float] = dataclasses.field(default_factory=list)
    refused: collections.Counter[int | str] = dataclasses.field(default_factory=collections.Counter)
    began: float = math.inf
    ended: float = 0.0

    def line(self) -> str:
        """Return the line of the report, with times in milliseconds."""
        rate = len(self.claims) / (self.ended - self.began)
        others = ", ".join(f"{count} x {status}" for status, count in sorted(self.refused.items(), key=str)) or "none"
        spreads = "   ".join(map(_spread, (self.searches, self.claims, self.refusals)))
        return f"{spreads}   {rate:8.1f}/s   refused: {others}"


def _spread(seconds: list[float]) -> str:
    ordered = sorted(seconds or [math.nan])
    return "  ".join(f"{1000 * ordered[int(len(ordered) * share)]:8.2f}" for share in (0.5, 0.99))


@dataclasses.dataclass
class Refusals:
    """Refused requests and claims, as pairs of a time and a share of a host."""

    refused: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    #: Times at which the requests began.
    claimed: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    def wrong(self, free: float) -> int:
        """Return the number of requests refused despite free capacity.

        Args:
            free: The largest free share of a host at the end.
        """
        last = {
            share: max((began for began, other in self.claimed if other >= share), default=-math.inf)
            for _, share in self.refused
        }
        return sum(share <= free or last[share] > ended for ended, share in self.refused)


class Cloud:
    """The usage of the cloud, and the measurements by stage."""

    def __init__(self, hosts: int, until: float, replies: placing_requests.Replies | None = None) -> None:
        """Prepare a run; with ``replies``, claim by POST /v1/claims, and add the responses there."""
        self._hosts, self._until = hosts, until
        self._taken = 0.0
        self._replies = replies
        self.stages = [Stage() for _ in range(_STAGES)]
        self.refusals = Refusals()

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
            place = self._find_and_claim if self._replies is None else self._claim_at_once
            claimed = yield from place(server, share, stage, chance)
            stage.ended = time.perf_counter()
            if claimed:
                self._taken += share
                self.refusals.claimed.append((began, share))

    def _find_and_claim(
        self, server: load.Server, share: float, stage: Stage, chance: random.Random
    ) -> Generator[bytes, load.Answer, bool]:
        began = time.perf_counter()
        answer = yield server.request("GET", f"/allocation_candidates?{_part_of_a_host(share)}&limit=10")
        requests = json.loads(answer.body)["allocation_requests"]
        searched = time.perf_counter()
        stage.searches.append(searched - began)
        if not requests:
            # The free capacity of every host is too small for this request.
            self._refused(stage, "no candidate", share)
            return False
        body = {**chance.choice(requests), **candidates.OWNER}
        answer = yield server.request("PUT", f"/allocations/{claims.new_uuid()}", body)
        stage.claims.append(time.perf_counter() - searched)
        if answer.status != 204:
            stage.refused[answer.status] += 1
        return answer.status == 204

    def _claim_at_once(
        self, server: load.Server, share: float, stage: Stage, _: random.Random
    ) -> Generator[bytes, load.Answer, bool]:
        assert self._replies is not None
        began = time.perf_counter()
        answer = yield server.request("POST", "/v1/claims", placing_requests.body(_part_of_a_host(share), 1))
        seconds = time.perf_counter() - began
        self._replies.add(answer)
        if answer.status == 200:
            stage.claims.append(seconds)
        else:
            stage.refusals.append(seconds)
            self._refused(stage, answer.status, share)
        return answer.status == 200

    def _refused(self, stage: Stage, status: int | str, share: float) -> None:
        stage.refused[status] += 1
        self.refusals.refused.append((time.perf_counter(), share))

    def report(self) -> None:
        """Print the measurements of all stages."""
        print(f"{'':11}{'search, p50, p99':>18}{'claim, p50, p99':>21}{'refusal, p50, p99':>21}  (milliseconds)")
        for number, stage in enumerate(self.stages):
            if stage.claims:
                print(f"{number / _STAGES:4.0%} - {(number + 1) / _STAGES:4.0%}{stage.line()}")

    def growth(self) -> float:
        """Return the ratio of the largest median latency of claims in a later stage to the first stage's."""
        first, *others = [statistics.median(stage.claims) for stage in self.stages if stage.claims]
        return max(others) / first


def _part_of_a_host(share: float) -> str:
    (host,) = fill.TOPOLOGIES["flat"]
    amounts = {name: int(total * ratio * share) for name, (total, ratio) in host.inventory.items()}
    return "resources=" + ",".join(f"{name}:{amount}" for name, amount in amounts.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one-call", action="store_true", help="send POST /v1/claims instead of a search and a claim")
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--until", type=float, default=0.95, help="the fraction of the capacity in use at the end")
    parser.add_argument("--workers", type=int, default=2, help="number of processes of the service")
    parser.add_argument("--database", choices=["mariadb", "postgresql"], default="mariadb")
    arguments = parser.parse_args()
    print(f"machine: {claims.machine()}")
    with serve_pair.database_server(arguments.database) as database:
        url = database.create_database()
        service = serve_pair.start_ours(url, arguments.workers).url
        fill.fill(url, "flat", arguments.hosts)
        cloud = Cloud(arguments.hosts, arguments.until, placing_requests.Replies() if arguments.one_call else None)
        server = claims.connect(service, "admin")
        search = f"/allocation_candidates?{_part_of_a_host(0.25)}&limit=1"
        load.run(server, [claims.reader(server, search) for _ in range(4 * arguments.workers)], 0)
        load.run(server, cloud.clients(server, arguments.clients), math.inf)
        wrong = cloud.refusals.wrong(placing_checks.largest_free_share(url))
    cloud.report()
    print(f"{wrong} of {len(cloud.refusals.refused)} refused despite free capacity")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
