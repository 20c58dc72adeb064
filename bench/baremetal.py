#!/usr/bin/env python3
"""Compare the speed of the Bare Metal API and of Ironic.

    python bench/baremetal.py [--peer COMMAND] [--nodes 1000] [--seconds 10] [--rounds 3] [--workers 2]

A private MariaDB gets two databases, one for this project under uWSGI and one for the peer, whose command has the
fields {port} and {database} and stays in the foreground.  Its hardware is fake and it has no authentication.  Both get
the same nodes through their API, which takes Ironic about half a second per node.  Without a peer only this project is
measured.

An allocation counts once a GET shows it as ``active``.  Deleting the allocations after each round is not measured.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import claims
import load
import serve_pair

VERSION = "baremetal 1.115"
#: At this version a new node is available at once.
BEFORE_ENROLL = "baremetal 1.10"
OPTIONS = "[baremetal]\nenabled = true\n"
CLASS = "baremetal.bench"
#: The fields that nova's driver requests.
FIELDS = (
    "uuid,power_state,target_power_state,provision_state,target_provision_state,last_error,maintenance,properties,"
    "instance_uuid,traits,resource_class"
)
#: Seconds between two requests for an allocation that is not ready.
POLL = 0.05
#: Maximum share of the nodes that a round allocates.
SHARE = 0.8


class Fleet:
    """The nodes of a server."""

    def __init__(self, url: str, nodes: int) -> None:
        self.server = load.Server(url, version=VERSION)
        self._old = load.Server(url, version=BEFORE_ENROLL)
        self.nodes = nodes

    def make(self) -> None:
        """Create the nodes, and wait until all of them can be allocated."""
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            for number, _ in enumerate(threads.map(self._make, range(self.nodes)), 1):
                if number % 100 == 0:
                    print(f"  {number} nodes at {self.server.url}", file=sys.stderr, flush=True)
        while self._busy_nodes():
            time.sleep(0.5)

    def _make(self, number: int) -> None:
        body = {"driver": "fake-hardware", "name": f"node-{number}"}
        uuid = self._old.call("POST", "/v1/nodes", body)["uuid"]
        change = [{"op": "add", "path": "/resource_class", "value": CLASS}]
        self.server.call("PATCH", f"/v1/nodes/{uuid}", change)
        self.server.call("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power on"})

    def _busy_nodes(self) -> int:
        nodes = self.server.call("GET", "/v1/nodes?fields=power_state,reservation")["nodes"]
        return sum(node["power_state"] is None or node["reservation"] is not None for node in nodes)

    def free(self) -> None:
        """Delete all allocations."""
        while allocations := self.server.call("GET", "/v1/allocations?fields=uuid")["allocations"]:
            with concurrent.futures.ThreadPoolExecutor(4) as threads:
                list(threads.map(self._end, [allocation["uuid"] for allocation in allocations]))

    def _end(self, allocation: str) -> None:
        with contextlib.suppress(RuntimeError):  # Ironic may refuse while it unlocks the node: free() retries
            self.server.call("DELETE", f"/v1/allocations/{allocation}")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The allocations or responses of a run: their rate per second, and their times in seconds, ascending."""

    rate: float
    times: Sequence[float]
    failures: int = 0


def allocate(fleet: Fleet, clients: int, seconds: float) -> Outcome:
    """Allocate nodes until the time has passed or the nodes run out."""
    times: list[float] = []
    failures: list[str] = []
    remaining = int(fleet.nodes * SHARE)

    def client() -> load.Client:
        nonlocal remaining
        body = {"resource_class": CLASS}
        while remaining > 0:
            remaining -= 1
            start = time.perf_counter()
            created = yield fleet.server.request("POST", "/v1/allocations", body)
            allocation = json.loads(created.body)
            while allocation.get("state") == "allocating":
                reply = yield fleet.server.request("GET", f"/v1/allocations/{allocation['uuid']}")
                allocation = json.loads(reply.body)
                if allocation.get("state") == "allocating":
                    yield POLL
            if allocation.get("state") == "active":
                times.append(time.perf_counter() - start)
            else:
                failures.append(str(allocation))

    result = load.run(fleet.server, [client() for _ in range(clients)], seconds)
    fleet.free()
    if failures:
        print(f"  {len(failures)} failed at {fleet.server.url}, the first: {failures[0]}")
    return Outcome(len(times) / result.seconds, sorted(times), len(failures))


def listing(fleet: Fleet, path: str, seconds: float) -> Outcome:
    """Repeat a GET that returns all nodes."""
    assert len(fleet.server.call("GET", path)["nodes"]) == min(fleet.nodes, 1000)
    result = load.run(fleet.server, [claims.reader(fleet.server, path)], seconds)
    return Outcome(result.rate, result.latencies, result.answers - result.successes)


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    run: Callable[[Fleet, float], Outcome]
    #: The goal: the ratio to the rate of the peer.
    goal: float


SCENARIOS = (
    Scenario("allocate-1", "POST until active, 1 client", lambda fleet, seconds: allocate(fleet, 1, seconds), 20),
    Scenario("allocate-8", "POST until active, 8 clients", lambda fleet, seconds: allocate(fleet, 8, seconds), 20),
    Scenario(
        "list",
        "GET /v1/nodes with the fields of nova's requests",
        lambda fleet, seconds: listing(fleet, f"/v1/nodes?fields={FIELDS}", seconds),
        10,
    ),
)


def rounds(scenario: Scenario, fleets: Sequence[Fleet], count: int, seconds: float) -> Iterator[list[Outcome]]:
    """Yield the outcomes of each round in the order of the fleets; each round begins with another fleet."""
    for number in range(count):
        outcomes = {}
        for step in range(len(fleets)):
            fleet = fleets[(number + step) % len(fleets)]
            outcomes[fleet] = scenario.run(fleet, seconds)
        yield [outcomes[fleet] for fleet in fleets]


def report(scenario: Scenario, columns: Sequence[Sequence[Outcome]]) -> bool:
    """Print the results, this project's last; return whether it reached the goal without failures."""
    print(f"\n{scenario.name}: {scenario.title}")
    for number, outcomes in enumerate(columns, 1):
        middle = statistics.median(statistics.median(outcome.times) for outcome in outcomes if outcome.times) * 1000
        rate = statistics.median(outcome.rate for outcome in outcomes)
        failures = sum(outcome.failures for outcome in outcomes)
        name = "ours" if number == len(columns) else "peer"
        print(f"  {name}: {rate:9,.1f}/s, median {middle:.1f} ms{f', {failures} failed' if failures else ''}")
    reached = not any(outcome.failures for outcome in columns[-1])
    if len(columns) == 2:
        ratios = [ours.rate / peer.rate for peer, ours in zip(*columns, strict=True)]
        ratio = statistics.median(ratios)
        print(f"  {ratio:.1f} times the peer (rounds: {min(ratios):.1f} to {max(ratios):.1f}), goal {scenario.goal:g}")
        reached = reached and ratio >= scenario.goal
    sys.stdout.flush()
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="COMMAND")
    parser.add_argument("--nodes", type=int, default=1000, help="number of nodes; fewer for a quick look")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=10, help="maximum duration of a scenario on a server in a round"
    )
    parser.add_argument("--workers", type=int, default=2, help="number of processes of this project's service")
    parser.add_argument("--only", help="scenarios, separated by commas: " + " ".join(s.name for s in SCENARIOS))
    arguments = parser.parse_args()
    selected = arguments.only.split(",") if arguments.only else [scenario.name for scenario in SCENARIOS]
    if unknown := set(selected) - {scenario.name for scenario in SCENARIOS}:
        parser.error(f"no scenario is called {', '.join(sorted(unknown))}")
    print(f"machine: {claims.machine()}")
    with serve_pair.database_server("mariadb") as database:
        urls = []
        if arguments.peer:
            urls.append(serve_pair.start_peer(arguments.peer, database.create_database()).url)
        ours = serve_pair.start_ours(database.create_database(), arguments.workers, OPTIONS)
        urls.append(f"{ours.url}/baremetal")
        fleets = [Fleet(url, arguments.nodes) for url in urls]
        for fleet in fleets:
            fleet.make()
        reached = [
            report(scenario, list(zip(*rounds(scenario, fleets, arguments.rounds, arguments.seconds), strict=True)))
            for scenario in SCENARIOS
            if scenario.name in selected
        ]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
