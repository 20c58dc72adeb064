#!/usr/bin/env python3
"""Measure the search for allocation candidates, compared with another Placement service on the same data.

    python bench/candidates.py [--peer COMMAND] [--only NAMES] [--seconds 2] [--rounds 3] [--workers 2]

For every topology a private MariaDB gets two databases with the same hosts, one for this project under uWSGI and one
for the peer.  The peer's command has the fields {port} and {database}, and stays in the foreground.  Both get the same
requests over HTTP, in turn, in several rounds.  Without a peer only this project is measured.

Queries for which the peer takes too long are sent only to this project.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import claims
import fill
import load
import serve_pair

from tests import servers

ZONE = fill.aggregate("zone-0")
FLAT = "resources=VCPU:1,DISK_GB:10,MEMORY_MB:256"
IN_ZONE = f"{FLAT}&member_of={ZONE}&required={fill.TRAIT}"
NESTED = "resources_C=VCPU:1,MEMORY_MB:256&resources_F=FPGA:1&group_policy=none&same_subtree=_C,_F"
OWNER = {"project_id": "bench", "user_id": "bench", "consumer_generation": None, "consumer_type": "INSTANCE"}


def devices(groups: int) -> str:
    """Return a query with isolated groups of one device each."""
    return "&".join([f"resources_{number}=PGPU:1" for number in range(groups)]) + "&group_policy=isolate"


MakeClients = Callable[[load.Server], list[load.Client]]


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    make: MakeClients
    #: The goal: the ratio to the speed of the peer; None if the peer is not measured.
    goal: float | None = None


def repeating(query: str, path: str = "/allocation_candidates") -> MakeClients:
    """Return a function that creates one client, which repeats a GET."""
    return lambda server: [claims.reader(server, f"{path}?{query}" if query else path)]


def finding_and_claiming(clients: int) -> MakeClients:
    """Return a function that creates clients, which find candidates and claim one of the first ten."""
    return lambda server: [find_and_claim(server, number) for number in range(clients)]


def find_and_claim(server: load.Server, number: int, resources: str = FLAT) -> load.Client:
    """Find candidates and claim one, repeatedly; a refused claim is not counted as a success."""
    search = server.request("GET", f"/allocation_candidates?{resources}&limit=10")
    while True:
        answer = yield search
        candidates = json.loads(answer.body)["allocation_requests"]
        if not candidates:
            return
        body = {**candidates[number % len(candidates)], **OWNER}
        number += 7
        yield server.request("PUT", f"/allocations/{claims.new_uuid()}", body)


@dataclasses.dataclass(frozen=True)
class Topology:
    kind: str
    hosts: int
    scenarios: tuple[Scenario, ...]
    used: float = 0.0


TOPOLOGIES = (
    Topology(
        "flat",
        10_000,
        (
            Scenario("flat-10", repeating(f"{IN_ZONE}&limit=10"), 200),
            Scenario("flat-1000", repeating(f"{IN_ZONE}&limit=1000"), 60),
            Scenario("flat-all", repeating(FLAT), 10),
            Scenario("providers", repeating("", "/resource_providers"), 3),
            Scenario("cycle-4", finding_and_claiming(4), 100),
        ),
    ),
    Topology(
        "flat",
        100_000,
        (
            Scenario("large-10", repeating(f"{IN_ZONE}&limit=10")),
            Scenario("large-rare", repeating(f"{FLAT}&required={fill.RARE}")),
        ),
    ),
    Topology("flat", 100_000, (Scenario("large-full", repeating("resources=VCPU:16,DISK_GB:10,MEMORY_MB:256")),), 0.97),
    Topology(
        "nested",
        1000,
        (Scenario("nested-10", repeating(f"{NESTED}&limit=10"), 100), Scenario("nested-all", repeating(NESTED), 10)),
    ),
    Topology(
        "devices",
        1000,
        (
            Scenario("devices-8", repeating(f"{devices(8)}&limit=1000")),
            Scenario("devices-9", repeating(f"{devices(9)}&limit=1000")),
        ),
    ),
)


def measure(
    scenario: Scenario, servers: Sequence[load.Server], rounds: int, seconds: float
) -> Iterator[list[load.Result]]:
    """Yield the results of all servers for each round; each round begins with another server."""
    for number in range(rounds):
        results = {}
        for step in range(len(servers)):
            server = servers[(number + step) % len(servers)]
            results[server] = load.run(server, scenario.make(server), seconds)
        yield [results[server] for server in servers]


def report(scenario: Scenario, columns: Sequence[Sequence[load.Result]]) -> None:
    """Print the results; the last column is for this project."""
    for number, results in enumerate(columns, 1):
        label = "ours" if number == len(columns) else "peer"
        print(f"  {label}: {claims.summary(results, None)}")
    if len(columns) == 2:
        medians = [[result.latency(0.5) for result in results] for results in columns]
        ratios = [peer / ours for peer, ours in zip(*medians, strict=True)]
        rate = claims.comparison(columns[0], columns[1])
        goal = f", to reach {scenario.goal:g}" if scenario.goal else ""
        print(f"  median latency {statistics.median(ratios):.1f} times lower{goal}; rate {rate}")
    sys.stdout.flush()


def run_topology(
    topology: Topology, arguments: argparse.Namespace, names: Sequence[str], database: servers.Server
) -> None:
    """Start the servers on new data of one topology, and measure its scenarios."""
    scenarios = [scenario for scenario in topology.scenarios if scenario.name in names]
    compared = arguments.peer and any(scenario.goal for scenario in scenarios)
    urls = {}
    for label in ("peer", "ours") if compared else ("ours",):
        url = database.create_database()
        start = (
            (lambda url=url: serve_pair.start_peer(arguments.peer, url))
            if label == "peer"
            else (lambda url=url: serve_pair.start_ours(url, arguments.workers))
        )
        urls[label] = start().url
        fill.fill(url, topology.kind, topology.hosts, topology.used, consumers=1)
    by_name = {label: claims.connect(url, "admin") for label, url in urls.items()}
    print(f"\n{topology.kind}, {topology.hosts:,} hosts" + (f", {topology.used:.0%} used" if topology.used else ""))
    for scenario in scenarios:
        pair = [server for label, server in by_name.items() if label == "ours" or scenario.goal]
        for server in pair:
            # Enough concurrent requests to reach every worker, so that each loads its index before the first round.
            began = time.perf_counter()
            load.run(server, [client for _ in range(4 * arguments.workers) for client in scenario.make(server)], 0)
            print(f"{scenario.name}: {server.url} was warm after {time.perf_counter() - began:.2f} s")
        report(scenario, list(zip(*measure(scenario, pair, arguments.rounds, arguments.seconds), strict=True)))


def main() -> int:
    names = [scenario.name for topology in TOPOLOGIES for scenario in topology.scenarios]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="COMMAND")
    parser.add_argument("--only", help="scenarios, separated by commas: " + " ".join(names))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="duration of a scenario on a server in a round")
    parser.add_argument("--workers", type=int, default=2, help="number of processes of this project's service")
    arguments = parser.parse_args()
    selected = arguments.only.split(",") if arguments.only else names
    if unknown := set(selected) - set(names):
        parser.error(f"no scenario is called {', '.join(sorted(unknown))}")
    print(f"machine: {claims.machine()}")
    for topology in TOPOLOGIES:
        if any(scenario.name in selected for scenario in topology.scenarios):
            with serve_pair.database_server("mariadb") as database:
                run_topology(topology, arguments, selected, database)
    return 0


if __name__ == "__main__":
    sys.exit(main())
