#!/usr/bin/env python3
"""Measure the cost of the history: claims with and without it, on one private database server.

    python bench/history.py [--rounds 7] [--seconds 3] [--database mariadb] [--driver mysqldb] [--only NAMES]

Two services have their own databases on the same durable server: one records events, the other has
``[history]enabled = false``.  They alternate in every round, in changing order.  For each scenario the report shows the
median ratio of the rate without to the rate with the history.  It also shows the processor time of the service and the
database server per request.  The exit code is 1 if a ratio exceeds the bound.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import claim_limit
import claims
import load
import placing_requests
import serve_pair

#: Maximum ratio of the rate without to the rate with the history.
BOUND = 1.08
_CLIENTS = 8
_BULK = 500


def releasing(server: load.Server, clients: int) -> list[load.Client]:
    """Return clients that claim and release, each on its own provider."""
    return [_releaser(server, claims.make_provider(server)) for _ in range(clients)]


def _releaser(server: load.Server, provider: str) -> load.Client:
    body = claims.claim(provider)
    while True:
        path = f"/allocations/{uuid.uuid4()}"
        yield server.request("PUT", path, body)
        yield server.request("DELETE", path)


def bulk(server: load.Server, clients: int) -> list[load.Client]:
    """Return one client that claims for many consumers per request."""
    del clients
    for _ in range(20):
        claims.make_provider(server)
    return [_caller(server)]


def _caller(server: load.Server) -> load.Client:
    while True:
        yield server.request("POST", "/v1/claims", placing_requests.body(placing_requests.FLAT, _BULK))


SCENARIOS = (
    *(scenario for scenario in claims.SCENARIOS if scenario.name in ("claim-1", "claim-8", "busy-8", "move-8")),
    claims.Scenario("release-8", "claims and releases, 8 clients", releasing, _CLIENTS),
    claims.Scenario("bulk", "claims for many consumers per request, 1 client", bulk, 1),
)


@dataclasses.dataclass
class Side:
    """One of the two services, and its measurements by scenario."""

    server: load.Server
    pids: tuple[int, int]
    rates: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    #: Milliseconds of processor time per request: service, database server.
    costs: dict[str, list[tuple[float, float]]] = dataclasses.field(default_factory=dict)

    def measure(self, scenario: claims.Scenario, seconds: float) -> None:
        """Add one run."""
        before = [claim_limit.processor_seconds([pid]) for pid in self.pids]
        result = load.run(self.server, scenario.make(self.server, scenario.clients), seconds)
        used = [claim_limit.processor_seconds([pid]) - start for pid, start in zip(self.pids, before, strict=True)]
        if result.successes != result.answers:
            raise SystemExit(f"{scenario.name}: {result.statuses}")
        self.rates.setdefault(scenario.name, []).append(result.rate)
        service, database = (value * 1000 / result.successes for value in used)
        self.costs.setdefault(scenario.name, []).append((service, database))

    def cost(self, name: str) -> str:
        """Return the median processor times as text."""
        service, database = (statistics.median(column) for column in zip(*self.costs[name], strict=True))
        return f"{service:.2f} + {database:.2f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3, help="duration of one run")
    parser.add_argument("--workers", type=int, default=2, help="number of processes of each service")
    parser.add_argument("--driver", help="the driver: mysqldb, pymysql, psycopg or psycopg2")
    parser.add_argument("--database", choices=("mariadb", "postgresql"), default="mariadb")
    parser.add_argument("--only", help="names of scenarios, separated by commas")
    arguments = parser.parse_args()
    only = arguments.only.split(",") if arguments.only else [scenario.name for scenario in SCENARIOS]
    chosen = [scenario for scenario in SCENARIOS if scenario.name in only]
    with serve_pair.database_server(arguments.database) as database:
        sides = []
        for enabled in ("false", "true"):
            url = serve_pair.with_driver(database.create_database(), arguments.driver)
            service = serve_pair.start_ours(url, arguments.workers, f"[history]\nenabled = {enabled}\n")
            sides.append(Side(load.Server(service.url), (service.pid, database.child.pid)))
        without, recording = sides
        print(f"machine: {claims.machine()}; {arguments.database}", flush=True)
        for side in sides:
            load.run(side.server, claims.on_own_providers(side.server, _CLIENTS), 1)
        for number in range(arguments.rounds):
            for scenario in chosen:
                for side in sides[:: -1 if number % 2 else 1]:
                    side.measure(scenario, arguments.seconds)
    worst = 0.0
    for scenario in chosen:
        name = scenario.name
        ratios = [off / on for off, on in zip(without.rates[name], recording.rates[name], strict=True)]
        ratio = statistics.median(ratios)
        worst = max(worst, ratio)
        print(
            f"{name:9} {statistics.median(recording.rates[name]):7,.0f}/s, without {ratio:.3f} times that (rounds: "
            f"{min(ratios):.2f} to {max(ratios):.2f}); processor {recording.cost(name)}, without {without.cost(name)}"
        )
    return int(worst > BOUND)


if __name__ == "__main__":
    sys.exit(main())
