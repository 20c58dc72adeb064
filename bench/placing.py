#!/usr/bin/env python3
"""Measure the rates of claims, and compare them with their goals.

    python bench/placing.py [--only NAMES] [--hosts 5000] [--many 100000] [--rounds 3] [--seconds 3]

A private, durable MariaDB gets a database for each cloud, and this project serves it under uWSGI.  The two
measurements of a ratio alternate in the same run, round by round.  Each line shows the median of the rounds, the goal,
and the processor time of the service and the database server per consumer, which depends less on other load.  At the
end all databases are checked: no inventory may be over-committed, and every consumer must hold exactly the allocations
of its response.  The exit code is 1 if a goal is missed or a check fails.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import math
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import candidates
import claims
import load
import placing_checks
import placing_requests
import serve_pair
import sql_limit
import until_full
from placing_clouds import Cloud, Clouds

#: Clients that claim for one consumer per request.
_CLIENTS = 8
#: Consumers per request in bulk.
_BULK = 1000


@dataclasses.dataclass
class Run:
    """The clouds and the arguments of a run."""

    clouds: Clouds
    hosts: int
    many: int
    rounds: int
    seconds: float
    #: Claims of the present measurement, and its refusals by status and code.
    claimed: int = 0
    refused: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def rate(self, cloud: Cloud, clients: list[load.Client]) -> float:
        """Return the number of successful requests per second."""
        result = load.run(cloud.server, clients, self.seconds)
        self.refused.update({str(status): n for status, n in result.statuses.items() if not 200 <= status < 300})
        self.claimed += result.successes
        return result.rate

    def placed(self, cloud: Cloud, clients: int, query: str, consumers: int = 1) -> float:
        """Return the number of consumers placed per second, by requests of POST /v1/claims for ``consumers`` each."""
        first = len(cloud.replies)
        calls = [cloud.replies.client(cloud.server, query, consumers) for _ in range(clients)]
        seconds = load.run(cloud.server, calls, self.seconds).seconds
        outcomes = cloud.replies.outcomes(first)
        claimed = outcomes.pop("claimed", 0)
        self.claimed += claimed
        self.refused.update(outcomes)
        return claimed / seconds


#: A function that measures once, and returns a rate per second.
Measurement = Callable[[Run], float]


@dataclasses.dataclass(frozen=True)
class Case:
    """One line of the report."""

    name: str
    title: str
    measured: Measurement
    #: The measurement for comparison in each round; None if the goal is a rate.
    against: Measurement | None
    goal: float
    #: The cloud whose processor time is reported.
    cloud: Callable[[Run], Cloud]


def flat(run: Run) -> Cloud:
    return run.clouds.get("flat", run.hosts)


def numa(run: Run) -> Cloud:
    return run.clouds.get("numa", run.hosts)


def many_flat(run: Run) -> Cloud:
    return run.clouds.get("flat", run.many)


def many_numa(run: Run) -> Cloud:
    return run.clouds.get("numa", run.many)


def claiming(scenario: str) -> Measurement:
    """Return a measurement of ``PUT /allocations`` of a scenario of ``claims.py``."""
    make = next(each.make for each in claims.SCENARIOS if each.name == scenario)
    return lambda run: run.rate(flat(run), make(flat(run).server, _CLIENTS))


def bare_sql(shared: bool) -> Measurement:
    """Return a measurement of the bare SQL of a claim, on an empty database of the same server."""
    return lambda run: sql_limit.measure(run.clouds.empty_database(), _CLIENTS, shared, run.seconds)


def find_and_claim(run: Run) -> float:
    """Measure a search and a claim of one of its candidates, as two requests of a client."""
    cloud = flat(run)
    clients = [candidates.find_and_claim(cloud.server, 7 * number) for number in range(_CLIENTS)]
    return run.rate(cloud, clients) / 2


def one_per_request(cloud: Callable[[Run], Cloud]) -> Measurement:
    """Return a measurement of requests for one consumer each."""
    return lambda run: run.placed(cloud(run), _CLIENTS, placing_requests.FLAT)


def in_bulk(cloud: Callable[[Run], Cloud], query: str = placing_requests.FLAT) -> Measurement:
    """Return a measurement of one client's requests for many consumers each."""
    return lambda run: run.placed(cloud(run), 1, query, _BULK)


ONE, BULK, NESTED = one_per_request(flat), in_bulk(flat), in_bulk(numa, placing_requests.NUMA)
CASES = (
    Case(
        "claim-8",
        "PUT /allocations from 8 clients, times the bare SQL",
        claiming("claim-8"),
        bare_sql(False),
        0.5,
        flat,
    ),
    Case("busy-8", "the same on one provider, times the bare SQL", claiming("busy-8"), bare_sql(True), 1.5, flat),
    Case("one-8", "POST /v1/claims, one consumer per request, 8 clients", ONE, None, 810, flat),
    Case("one-8-twice", "the same, times finding and claiming", ONE, find_and_claim, 2, flat),
    Case("bulk", "1,000 equal consumers per request, spread", BULK, None, 3750, flat),
    Case("nested", "1,000 per request, two devices and a NIC on one NUMA node", NESTED, None, 500, numa),
    Case("many-one-8", "one-8 on more hosts, times one-8", one_per_request(many_flat), ONE, 1 / 1.5, many_flat),
    Case("many-bulk", "bulk on more hosts, times bulk", in_bulk(many_flat), BULK, 1 / 1.5, many_flat),
    Case(
        "many-nested",
        "nested on more hosts, times nested",
        in_bulk(many_numa, placing_requests.NUMA),
        NESTED,
        1 / 1.5,
        many_numa,
    ),
)
#: The case of a cloud that fills up, which has its own report, and the largest ratio of a later stage's latency to the
#: first stage's.
FILLING, MAX_GROWTH = "until-full", 1.25


def measure(run: Run, case: Case) -> bool:
    """Print the lines of a case; return whether it reached its goal without refusals."""
    cloud = case.cloud(run)
    rates, ratios = [], []
    claimed, service, database = 0, 0.0, 0.0
    refused: collections.Counter[str] = collections.Counter()
    for _ in range(run.rounds):
        run.claimed, run.refused = 0, collections.Counter()
        before = run.clouds.processor_seconds(cloud)
        rates.append(case.measured(run))
        after = run.clouds.processor_seconds(cloud)
        claimed += run.claimed
        refused += run.refused
        service += after[0] - before[0]
        database += after[1] - before[1]
        if case.against:
            ratios.append(rates[-1] / case.against(run))
    rate, ratio = statistics.median(rates), statistics.median(ratios or [math.nan])
    reached = not refused and (ratio if case.against else rate) >= case.goal
    per_claim = 1000 / max(claimed, 1)
    shown = f"{ratio:.2f} times (rounds: {min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
    print(f"\n{case.name}: {case.title}")
    print(f"  {rate:,.0f}/s {shown}, to reach {case.goal:,.2f}: {'reached' if reached else 'NOT REACHED'}")
    print(f"  processor time per claim: service {per_claim * service:.2f} ms, database {per_claim * database:.2f} ms")
    if refused:
        print("  refused: " + ", ".join(f"{count} x {reason}" for reason, count in refused.items()))
    sys.stdout.flush()
    return reached


def fill_up(run: Run, clients: int = 4) -> bool:
    """Claim until 95 % of a new cloud is used, and report; return whether latency is flat and no refusal wrong."""
    cloud = run.clouds.create("flat", run.hosts)
    filling = until_full.Cloud(run.hosts, 0.95, cloud.replies)
    load.run(cloud.server, filling.clients(cloud.server, clients), math.inf)
    wrong = filling.refusals.wrong(placing_checks.largest_free_share(cloud.database_url))
    reached = filling.growth() <= MAX_GROWTH and not wrong
    print(f"\n{FILLING}: POST /v1/claims from {clients} clients, an eighth or a quarter of a host each")
    filling.report()
    refused, outcome = len(filling.refusals.refused), "reached" if reached else "NOT REACHED"
    print(f"  {filling.growth():.2f} times the first stage at most, to reach {MAX_GROWTH}; {wrong} of")
    print(f"  {refused} refused despite free capacity: {outcome}")
    return reached


def main() -> int:
    names = [*(case.name for case in CASES), FILLING]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="cases, separated by commas: " + " ".join(names))
    parser.add_argument("--hosts", type=int, default=5000)
    parser.add_argument("--many", type=int, default=100_000, help="number of hosts in the cases many-...")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="duration of one measurement in one round")
    parser.add_argument("--workers", type=int, default=2, help="number of processes of the service")
    parser.add_argument("--threads", type=int, default=serve_pair.THREADS, help="number of threads of each process")
    parser.add_argument("--driver", help="the driver of the service and of the bare SQL: mysqldb or pymysql")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",") if arguments.only else names
    if unknown := set(wanted) - set(names):
        parser.error(f"no case is called {', '.join(sorted(unknown))}")
    print(f"machine: {claims.machine()}")
    with serve_pair.database_server("mariadb") as database:
        clouds = Clouds(database, arguments.workers, arguments.threads, arguments.driver)
        run = Run(clouds, arguments.hosts, arguments.many, arguments.rounds, arguments.seconds)
        reached = [measure(run, case) for case in CASES if case.name in wanted]
        if FILLING in wanted:
            reached.append(fill_up(run))
        failures = [sentence for cloud in clouds.made for sentence in cloud.failures()]
    print(
        "\n"
        + (
            "\n".join(failures[:20])
            or "nothing is over-committed, and every consumer holds the allocations of its response"
        )
    )
    return 0 if all(reached) and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
