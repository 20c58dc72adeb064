#!/usr/bin/env python3
"""Compare claims over HTTP with the bare SQL of a claim, on one private MariaDB or PostgreSQL, in the same minute.

    python bench/claim_limit.py [--rounds 5] [--workers 2] [--threads 4] [--driver mysqldb] [--database mariadb]

In every round, ``claim-8`` and ``busy-8`` of claims.py alternate with two runs of sql_limit.py with the same number of
clients.  The report shows the median rates, and the ratio of the service to the bare SQL of the same round.  It also
shows the processor time of a claim in the workers, the database server and the load generator.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import claims
import load
import serve_pair
import sql_limit

from tests import children

CLIENTS = 8
#: The scenario of claims.py, and whether all clients of sql_limit.py use one provider.
PAIRS = (("claim-8", False), ("busy-8", True))


def processor_seconds(pids: Iterable[int]) -> float:
    """Return the processor seconds of these processes and their descendants."""
    total = 0
    for pid in {pid for parent in pids for pid in (parent, *children.descendants(parent))}:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Column:
    """The rounds of one scenario."""

    rates: list[float] = dataclasses.field(default_factory=list)
    limits: list[float] = dataclasses.field(default_factory=list)
    #: Milliseconds of processor time per claim: workers, database server, load generator.
    costs: list[tuple[float, float, float]] = dataclasses.field(default_factory=list)
    refused: int = 0

    def lines(self, name: str) -> str:
        """Return the lines of the report."""
        ratios = [rate / limit for rate, limit in zip(self.rates, self.limits, strict=True)]
        workers, database, generator = (statistics.median(column) for column in zip(*self.costs, strict=True))
        return (
            f"{name:8} {statistics.median(self.rates):7,.0f}/s, bare SQL {statistics.median(self.limits):7,.0f}/s: "
            f"{statistics.median(ratios):.1%} of it (rounds: {min(ratios):.1%} to {max(ratios):.1%}); "
            f"{self.refused or 'none'} refused\n"
            f"{'':8} milliseconds of processor time per claim: workers {workers:.2f}, database {database:.2f}, "
            f"load generator {generator:.2f}"
        )


def measure(
    column: Column, server: load.Server, scenario: claims.Scenario, pids: tuple[list[int], list[int]], seconds: float
) -> None:
    """Add one run of the service."""
    before = [processor_seconds(group) for group in pids]
    result = load.run(server, scenario.make(server, CLIENTS), seconds)
    used = [processor_seconds(group) - start for group, start in zip(pids, before, strict=True)]
    column.rates.append(result.rate)
    workers, database, generator = (value * 1000 / result.successes for value in (*used, result.own_seconds))
    column.costs.append((workers, database, generator))
    column.refused += result.answers - result.successes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="duration of one run")
    parser.add_argument("--workers", type=int, default=2, help="number of processes of the service")
    parser.add_argument("--threads", type=int, default=serve_pair.THREADS, help="number of threads of each process")
    parser.add_argument("--driver", help="the driver of both: mysqldb, pymysql, psycopg or psycopg2")
    parser.add_argument("--database", choices=("mariadb", "postgresql"), default="mariadb")
    parser.add_argument("--only", help="one scenario: claim-8 or busy-8")
    arguments = parser.parse_args()
    pairs = [(name, shared) for name, shared in PAIRS if arguments.only in (None, name)]
    columns = {name: Column() for name, _ in pairs}
    scenarios = {scenario.name: scenario for scenario in claims.SCENARIOS}
    with serve_pair.database_server(arguments.database) as database:
        service = serve_pair.start_ours(
            serve_pair.with_driver(database.create_database(), arguments.driver),
            arguments.workers,
            threads=arguments.threads,
        )
        server = load.Server(service.url)
        bare = serve_pair.with_driver(database.create_database(), arguments.driver)
        pids = ([service.pid], [database.child.pid])
        print(f"machine: {claims.machine()}; {sa.make_url(bare).get_driver_name()}", flush=True)
        load.run(server, scenarios["claim-8"].make(server, CLIENTS), 1)
        for number in range(arguments.rounds):
            for name, shared in pairs:
                order = [
                    lambda name=name: measure(columns[name], server, scenarios[name], pids, arguments.seconds),
                    lambda name=name, shared=shared: columns[name].limits.append(
                        sql_limit.measure(bare, CLIENTS, shared, arguments.seconds)
                    ),
                ]
                for run in order[:: -1 if number % 2 else 1]:
                    run()
    for name, column in columns.items():
        print(column.lines(name))


if __name__ == "__main__":
    main()
