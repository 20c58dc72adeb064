#!/usr/bin/env python3
"""Measure how fast consumers get their places, beside what is to be reached.

    python bench/placing.py [--only NAMES] [--hosts 5000] [--many 100000] [--rounds 3] [--seconds 3]

A private, durable MariaDB gets a database for each cloud, and this project serves it under uWSGI.  Ratios are of two
measurements in the same run, one after the other, round after round.  Each line has the median of the rounds, what is
to be reached, and the processor time of the service and of the database server for a consumer, which depends less on
other load of the machine.  At the end all databases are read: no inventory may be used beyond its capacity, and every
consumer must hold what it was told.  The exit code is 1 if something was not reached, or is wrong.
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

#: The number of clients that claim for one consumer a call.
_CLIENTS = 8
#: The number of consumers of one call in bulk.
_BULK = 1000


@dataclasses.dataclass
class Run:
    """What a run is made with: its clouds, and the arguments of the command."""

    clouds: Clouds
    hosts: int
    many: int
    rounds: int
    seconds: float
    #: The claims of the present measurement, and its refusals by status and code.
    claimed: int = 0
    refused: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def rate(self, cloud: Cloud, clients: list[load.Client]) -> float:
        """Return the successful requests a second."""
        result = load.run(cloud.server, clients, self.seconds)
        self.refused.update({str(status): n for status, n in result.statuses.items() if not 200 <= status < 300})
        self.claimed += result.successes
        return result.rate

    def placed(self, cloud: Cloud, clients: int, query: str, consumers: int = 1) -> float:
        """Return the consumers a second that got a place, by calls of POST /v1/claims for a number of consumers."""
        first = len(cloud.replies)
        calls = [cloud.replies.client(cloud.server, query, consumers) for _ in range(clients)]
        seconds = load.run(cloud.server, calls, self.seconds).seconds
        outcomes = cloud.replies.outcomes(first)
        claimed = outcomes.pop("claimed", 0)
        self.claimed += claimed
        self.refused.update(outcomes)
        return claimed / seconds


#: Measures once, and returns a rate per second.
Measurement = Callable[[Run], float]


@dataclasses.dataclass(frozen=True)
class Case:
    """One line of the report."""

    name: str
    title: str
    measured: Measurement
    #: What it is compared with in each round; without it the goal is a rate.
    against: Measurement | None
    goal: float
    #: The cloud whose service is measured, to report its processor time.
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
    make = next(one.make for one in claims.SCENARIOS if one.name == scenario)
    return lambda run: run.rate(flat(run), make(flat(run).server, _CLIENTS))


def bare_sql(shared: bool) -> Measurement:
    """Return a measurement of the bare SQL of a claim, on an empty database of the same server."""
    return lambda run: sql_limit.measure(run.clouds.empty_database(), _CLIENTS, shared, run.seconds)


def find_and_claim(run: Run) -> float:
    """Measure a search and a claim of what it finds, as two requests of a client."""
    cloud = flat(run)
    clients = [candidates.find_and_claim(cloud.server, 7 * number) for number in range(_CLIENTS)]
    return run.rate(cloud, clients) / 2


def one_a_call(cloud: Callable[[Run], Cloud]) -> Measurement:
    """Return a measurement of calls for one consumer each."""
    return lambda run: run.placed(cloud(run), _CLIENTS, placing_requests.FLAT)


def in_bulk(cloud: Callable[[Run], Cloud], query: str = placing_requests.FLAT) -> Measurement:
    """Return a measurement of one client's calls for many consumers each."""
    return lambda run: run.placed(cloud(run), 1, query, _BULK)


ONE, BULK, NESTED = one_a_call(flat), in_bulk(flat), in_bulk(numa, placing_requests.NUMA)
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
    Case("one-8", "POST /v1/claims, one consumer a call, 8 clients", ONE, None, 810, flat),
    Case("one-8-twice", "the same, times our own find and claim", ONE, find_and_claim, 2, flat),
    Case("bulk", "1,000 like consumers a call, spread", BULK, None, 3750, flat),
    Case("nested", "1,000 a call, two devices and a NIC on one NUMA node", NESTED, None, 500, numa),
    Case("many-one-8", "one-8 on more hosts, times one-8", one_a_call(many_flat), ONE, 1 / 1.5, many_flat),
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
#: The case of a cloud that fills up, which has a report of its own; and how many times the first stage's latency the
#: greatest later one may be.
FILLING, FLAT_WITHIN = "until-full", 1.25


def measure(run: Run, case: Case) -> bool:
    """Print the line of a case; return whether its goal is reached, with nothing refused."""
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
    each = 1000 / max(claimed, 1)
    shown = f"{ratio:.2f} times (rounds: {min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
    print(f"\n{case.name}: {case.title}")
    print(f"  {rate:,.0f}/s {shown}, to reach {case.goal:,.2f}: {'reached' if reached else 'NOT REACHED'}")
    print(f"  processor time of one: {each * service:.2f} ms of the service, {each * database:.2f} ms of the database")
    if refused:
        print("  refused: " + ", ".join(f"{count} x {why}" for why, count in refused.items()))
    sys.stdout.flush()
    return reached


def fill_up(run: Run, clients: int = 4) -> bool:
    """Claim until 95 % of a new cloud is used, and print it; return whether latency is flat and no refusal wrong."""
    cloud = run.clouds.new("flat", run.hosts)
    filling = until_full.Cloud(run.hosts, 0.95, cloud.replies)
    load.run(cloud.server, filling.clients(cloud.server, clients), math.inf)
    wrong = filling.refusals.wrong(placing_checks.largest_free_share(cloud.database_url))
    reached = filling.growth() <= FLAT_WITHIN and not wrong
    print(f"\n{FILLING}: POST /v1/claims from {clients} clients, an eighth or a quarter of a host each")
    filling.report()
    print(f"  {filling.growth():.2f} times the first stage at most, to reach {FLAT_WITHIN}; {wrong} of")
    print(f"  {len(filling.refusals.refused)} refused while there was room: {'reached' if reached else 'NOT REACHED'}")
    return reached


def main() -> int:
    names = [*(case.name for case in CASES), FILLING]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, separated by commas, of " + " ".join(names))
    parser.add_argument("--hosts", type=int, default=5000)
    parser.add_argument("--many", type=int, default=100_000, help="the number of hosts of the cases many-...")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of one measurement in one round")
    parser.add_argument("--workers", type=int, default=2, help="processes of the service")
    parser.add_argument("--threads", type=int, default=serve_pair.THREADS, help="of each of these processes")
    parser.add_argument("--driver", help="of the service and of the bare SQL: mysqldb or pymysql")
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
    print("\n" + ("\n".join(failures[:20]) or "nothing over capacity, and every consumer holds what it was told"))
    return 0 if all(reached) and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
