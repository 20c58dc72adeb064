#!/usr/bin/env python3
"""Send the same random requests to two services of the Bare Metal API, and print the differences in their responses.

    baremetal_diff.py http://127.0.0.1:6385 http://127.0.0.1:8778/baremetal [--seed 1] [--runs 20] [--steps 60]

A is an Ironic without authentication and with fake hardware; B is this service (``make serve``).  Both must be empty,
and each run deletes everything in them: **never use it on a cloud in production**.  A run is a sequence of valid and
invalid requests in random versions.  Its first difference is shrunk to a minimal sequence of requests that shows it.
The intentional differences in docs/divergences.rst do not count.  Exit code: 0 without differences, 1 with differences,
2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.baremetal.runs import Difference, Pair, random_run, shrunk
from tools.baremetal.servers import Request, Server


def transcript(seed: int, requests: list[Request], difference: Difference) -> str:
    """Return the report of a difference: the requests, the places, and both responses."""
    lines = [f"--- seed {seed}: {difference.request.method} {difference.request.path.partition('?')[0]}"]
    lines += [f"    {request}" for request in requests]
    lines += [f"  {line}" for line in difference.lines[:8]]
    for name, reply in zip("AB", difference.replies, strict=True):
        lines.append(f"  {name}: {reply.status} {reply.text[:600]}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first run; each run increments it")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60, help="random requests per run, after the creation of nodes")
    parser.add_argument(
        "--shrink", type=float, default=120, metavar="SECONDS", help="time to shrink each difference; 0 disables it"
    )
    parser.add_argument("--sentences", action="store_true", help="also compare the messages of errors")
    parser.add_argument("--alike", action="store_true", help="B is also an Ironic: report intentional differences")
    parser.add_argument("--stats", action="store_true", help="count the responses of A by route and status")
    parser.add_argument("--wipe", action="store_true", help="empty both services first")
    arguments = parser.parse_args(argv)

    pair = Pair(Server(arguments.a), Server(arguments.b), alike=arguments.alike, sentences=arguments.sentences)
    if arguments.wipe:
        pair.wipe()
    for server in (pair.a, pair.b):
        if server.allocations() or server.get("/v1/nodes?fields=uuid")["nodes"]:
            parser.error(f"{server.base} is not empty; a run deletes everything: use --wipe to confirm")
    failed = requests = 0
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        run, difference = random_run(pair, seed, arguments.steps)
        requests += len(run)
        if difference:
            failed += 1
            run = shrunk(pair, run, difference, arguments.shrink) if arguments.shrink else run
            print(transcript(seed, run, difference), flush=True)
    pair.wipe()
    if arguments.stats:
        for (method, route, status), count in sorted(pair.counts.items()):
            print(f"{count:6} {method} {route} {status}")
    print(f"intentional differences: {', '.join(sorted(pair.used)) or 'none'}")
    print(f"{requests} requests compared; {arguments.runs - failed} runs without a difference, {failed} with one")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
