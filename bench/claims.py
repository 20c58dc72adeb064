#!/usr/bin/env python3
"""Compare the speed of Placement servers.

    python bench/claims.py URL [URL ...]

The first URL is the reference.  Every scenario runs on each server in turn, in several rounds, so that other load on
the machine affects all of them equally; the ratio is the median of the ratios of the rounds.

The servers must accept the token "admin" (``auth_strategy = noauth2``) or the token of --token.  Providers and
consumers are not removed: use scratch databases.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import platform
import statistics
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import load

INVENTORY = {name: {"total": 1_000_000_000} for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
RESOURCES = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 10}


def new_uuid() -> str:
    return str(uuid.uuid4())


class Callee(Protocol):
    """A server that handles requests, over HTTP or in process."""

    def call(self, method: str, path: str, body: Any = None) -> Any: ...


def make_provider(server: Callee) -> str:
    """Create a provider with capacity for all requests of a run, and return its uuid."""
    provider = new_uuid()
    server.call("POST", "/resource_providers", {"name": provider, "uuid": provider})
    body = {"resource_provider_generation": 0, "inventories": INVENTORY}
    server.call("PUT", f"/resource_providers/{provider}/inventories", body)
    return provider


def claim(provider: str, generation: int | None = None) -> dict[str, Any]:
    """Return the body of a claim of three classes."""
    return {
        "allocations": {provider: {"resources": RESOURCES}},
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
        "project_id": "bench-project",
        "user_id": "bench-user",
    }


def claimer(server: load.Server, providers: list[str]) -> load.Client:
    """Claim for a new consumer with each request, on the providers in turn."""
    while True:
        for provider in providers:
            yield server.request("PUT", f"/allocations/{new_uuid()}", claim(provider))


def mover(server: load.Server, source: str, target: str) -> load.Client:
    """Move an instance between two providers; as in nova, a new migration consumer gets its old allocations."""
    instance, generation = new_uuid(), 1
    server.call("PUT", f"/allocations/{instance}", claim(source))
    while True:
        body = {instance: claim(target, generation), new_uuid(): claim(source)}
        answer = yield server.request("POST", "/allocations", body)
        if answer.status == 204:
            source, target, generation = target, source, generation + 1


def reader(server: load.Server, path: str) -> load.Client:
    """Repeat a GET."""
    request = server.request("GET", path)
    while True:
        yield request


#: A function that creates clients for one run on a server.  Each run uses new providers, because a faster server leaves
#: more rows, which would slow down its next run.
Clients = Callable[[load.Server, int], list[load.Client]]


def on_own_providers(server: load.Server, clients: int) -> list[load.Client]:
    return [claimer(server, [make_provider(server) for _ in range(2)]) for _ in range(clients)]


def on_one_provider(server: load.Server, clients: int) -> list[load.Client]:
    provider = make_provider(server)
    return [claimer(server, [provider]) for _ in range(clients)]


def moving(server: load.Server, clients: int) -> list[load.Client]:
    return [mover(server, make_provider(server), make_provider(server)) for _ in range(clients)]


def reading_root(server: load.Server, clients: int) -> list[load.Client]:
    return [reader(server, "/") for _ in range(clients)]


def reading_provider(server: load.Server, clients: int) -> list[load.Client]:
    path = f"/resource_providers/{make_provider(server)}"
    return [reader(server, path) for _ in range(clients)]


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    make: Clients
    clients: int


SCENARIOS = (
    Scenario("claim-1", "PUT /allocations, 3 classes, new consumers, 1 client", on_own_providers, 1),
    Scenario("claim-8", "the same, 8 clients, each on its own providers", on_own_providers, 8),
    Scenario("busy-8", "the same, 8 clients, all on one provider with enough capacity", on_one_provider, 8),
    Scenario("move-8", "POST /allocations, instance moves, 8 clients", moving, 8),
    Scenario("root-4", "GET /, 4 clients", reading_root, 4),
    Scenario("provider-4", "GET one provider, 4 clients", reading_provider, 4),
)


def rounds(servers: list[load.Server], scenario: Scenario, count: int, seconds: float) -> Iterator[list[load.Result]]:
    """Yield the results of each round in the order of ``servers``; each round begins with another server."""
    for number in range(count):
        results = {}
        for step in range(len(servers)):
            server = servers[(number + step) % len(servers)]
            results[server] = load.run(server, scenario.make(server, scenario.clients), seconds)
        yield [results[server] for server in servers]


def summary(results: Sequence[load.Result], workers: int | None) -> str:
    """Return a line for the results of one server in one scenario."""
    statuses = sum((r.statuses for r in results), collections.Counter[int]())
    failures = ", ".join(
        f"{n} x {status or 'lost'}" for status, n in sorted(statuses.items()) if not 200 <= status < 300
    )
    rate = statistics.median(r.rate for r in results)
    middle, tail = (statistics.median(r.latency(share) for r in results) * 1000 for share in (0.5, 0.99))
    generator = sum(r.own_seconds for r in results) / sum(r.answers for r in results)
    per_worker = f" ({rate / workers:,.0f} per worker)" if workers else ""
    return (
        f"{rate:9,.1f}/s{per_worker}, median {middle:.1f} ms, p99 {tail:.1f} ms; "
        f"{'not 2xx: ' + failures if failures else 'all 2xx'}; load generator {generator * 1e6:.0f} us per request"
    )


def comparison(first: Sequence[load.Result], other: Sequence[load.Result]) -> str:
    """Return the ratio of the rates of ``other`` and ``first``: the median and the range of the rounds."""
    if not all(r.successes for r in first):
        return "no ratio: the first had a round without a success"
    ratios = [b.rate / a.rate for a, b in zip(first, other, strict=True)]
    return f"{statistics.median(ratios):.2f} times the first (rounds: {min(ratios):.2f} to {max(ratios):.2f})"


def connect(url: str, token: str) -> load.Server:
    """Return the server at a URL; exit with a message if it does not respond."""
    try:
        return load.Server(url, token)
    except OSError as error:
        raise SystemExit(f"{url} cannot be reached: {error}") from None


def machine() -> str:
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{os.cpu_count()} x {model}, {platform.system()} {platform.release()}, load {os.getloadavg()[0]:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("urls", metavar="URL", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="duration of a scenario on a server in a round")
    parser.add_argument("--only", help="scenarios, separated by commas: " + " ".join(s.name for s in SCENARIOS))
    parser.add_argument(
        "--workers", type=int, help="number of worker processes of each server, to report the rate of GET / per worker"
    )
    parser.add_argument("--token", default="admin")
    parser.add_argument("--json", metavar="FILE", help="write the rate of every round to this file")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else [s.name for s in SCENARIOS]
    if unknown := set(names) - {s.name for s in SCENARIOS}:
        parser.error(f"no scenario is called {', '.join(sorted(unknown))}")

    servers = [connect(url, arguments.token) for url in arguments.urls]
    print(f"machine: {machine()}")
    for number, server in enumerate(servers, 1):
        print(f"[{number}] {server.url}, one connection per {'client' if server.keeps_connections else 'request'}")
    record: dict[str, list[list[float]]] = {}
    failed = False
    for scenario in (s for s in SCENARIOS if s.name in names):
        print(f"\n{scenario.name}: {scenario.title}")
        columns = list(zip(*rounds(servers, scenario, arguments.rounds, arguments.seconds), strict=True))
        for number, results in enumerate(columns, 1):
            print(f"  [{number}] {summary(results, arguments.workers if scenario.make is reading_root else None)}")
            if number > 1:
                print(f"      {comparison(columns[0], results)}")
            failed = failed or not all(r.successes for r in results)
        record[scenario.name] = [[round(r.rate, 2) for r in results] for results in columns]
        sys.stdout.flush()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": machine(), "urls": arguments.urls, "successes_per_second": record}, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
