#!/usr/bin/env python3
"""Measure the cost of traces: the time of a request with and without them.

    python bench/tracing.py [--parent DIRECTORY] [--rounds N] [--seconds S]

Each variant is a process with the service and its own SQLite file, as in ``framework.py``; they alternate at short
intervals, so that other load affects all of them equally.  The ratios compare the processor time per request of the
process, including its exporter, with *off*, as medians of the rounds:

- *off*: the extra is installed, and no variable enables traces;
- *parent*: the same for another checkout, such as ``git worktree add DIRECTORY HEAD~1``;
- *1 %*: a sampler that keeps one request in a hundred;
- *all*: every request, sent to a collector that discards the spans.
"""

from __future__ import annotations

import argparse
import http.server
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
KINDS = ("root", "provider", "candidates", "claim")
_SAMPLER = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}


class Discard(http.server.BaseHTTPRequestHandler):
    """A collector that discards the spans."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Variant:
    """A process that measures on request."""

    def __init__(self, tree: Path, environment: dict[str, str]) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        argv = [sys.executable, str(HERE / "tracing.py"), "--measure", str(tree)]
        self._process = subprocess.Popen(
            argv, env=inherited | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.take("root", 0)

    def take(self, kind: str, seconds: float) -> float:
        """Measure requests of a kind for some seconds, and return the processor time of one in microseconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(kind, seconds, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


def measure(tree: str) -> None:
    """Measure the service of a checkout, as requested by lines on stdin."""
    sys.path[0:0] = [tree, f"{tree}/bench"]
    import framework

    def candidates(service: framework.Service) -> framework.Requests:
        framework.claims.make_provider(service)
        while True:
            yield "GET", "/allocation_candidates", None

    with tempfile.TemporaryDirectory() as directory:
        service = framework.Service(f"sqlite:///{directory}/placement.sqlite", directory)
        requests = {name: kind(service) for name, kind in {**framework.KINDS, "candidates": candidates}.items()}
        for line in sys.stdin:
            kind, seconds = line.split()
            count, start, deadline = 0, time.process_time(), time.perf_counter() + float(seconds)
            while count < 1 or time.perf_counter() < deadline:
                environ = service.environ(*next(requests[kind]))
                if kind == "candidates":
                    environ["QUERY_STRING"] = "resources=VCPU:1&limit=10"
                service.send(environ)
                count += 1
            print((time.process_time() - start) / count * 1e6, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parent", type=Path, metavar="DIRECTORY")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.25, help="duration of each variant in a round")
    parser.add_argument("--measure", metavar="DIRECTORY", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Discard) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        exporter = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}
        tree = HERE.parent
        variants = {"off": Variant(tree, {})}
        if arguments.parent:
            variants["parent"] = Variant(arguments.parent.resolve(), {})
        variants |= {"1 %": Variant(tree, exporter | _SAMPLER), "all": Variant(tree, exporter)}
        print(f"{'':12}{'off':>12}" + "".join(f"{name:>20}" for name in [*variants][1:]))
        for kind in KINDS:
            report(kind, variants, arguments.rounds, arguments.seconds)
        for variant in variants.values():
            variant.end()
        server.shutdown()


def report(kind: str, variants: dict[str, Variant], rounds: int, seconds: float) -> None:
    """Print a line for a kind of request: microseconds, and the ratios with their quartiles."""
    microseconds: dict[str, list[float]] = {name: [] for name in variants}
    names = [*variants]
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            microseconds[name].append(variants[name].take(kind, seconds))
    line = f"{kind:12}{statistics.median(microseconds['off']):9,.0f} us"
    for name in names[1:]:
        ratios = [traced / untraced for traced, untraced in zip(microseconds[name], microseconds["off"], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        line += f"{middle:8.3f} ({low:.2f}-{high:.2f})"
    print(line, flush=True)


if __name__ == "__main__":
    main()
