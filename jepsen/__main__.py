"""The command line: ``python -m jepsen run | campaign | replay | list``."""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from jepsen import catalogue
from jepsen.campaign import Campaign
from jepsen.checker.recovery import slow
from jepsen.clusters.other_implementation import Other
from jepsen.replay import replay
from jepsen.report import Report
from jepsen.run import Plan, Result, keep, run
from jepsen.violation import Violation
from tests import children, servers

_COMMAND = "for the other-... clusters: command line with {port} and {database} that runs another implementation"


def main() -> int:
    """Run the command and return its exit code: 1 for a violation, 2 if a required program is not installed."""
    arguments = _parser().parse_args()
    Other.command = getattr(arguments, "command", "")
    try:
        code: int = arguments.does(arguments)
    except servers.Missing as reason:
        print(reason, file=sys.stderr)
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jepsen", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run_parser = commands.add_parser("run", help="run some workloads once, with nemeses")
    run_parser.set_defaults(does=_run)
    run_parser.add_argument("--cluster", required=True, choices=catalogue.CLUSTERS)
    run_parser.add_argument("--command", default="", help=_COMMAND)
    run_parser.add_argument("--workload", action="append", required=True, choices=catalogue.WORKLOADS)
    run_parser.add_argument("--nemesis", action="append", default=[], choices=catalogue.NEMESES)
    run_parser.add_argument("--seconds", type=float, default=60.0)
    run_parser.add_argument(
        "--seed", type=int, default=random.randrange(2**32), help="seed of all random choices (default: random)"
    )
    campaign_parser = commands.add_parser(
        "campaign", help="repeat runs: every nemesis in turn, with changing workloads"
    )
    campaign_parser.set_defaults(does=_campaign)
    campaign_parser.add_argument("--cluster", required=True, choices=catalogue.CLUSTERS)
    campaign_parser.add_argument("--command", default="", help=_COMMAND)
    campaign_parser.add_argument("--workload", action="append", choices=catalogue.WORKLOADS, help="(default: all)")
    campaign_parser.add_argument(
        "--nemesis", action="append", choices=catalogue.NEMESES, help="(default: all that apply)"
    )
    campaign_parser.add_argument("--minutes", type=float, default=30.0)
    campaign_parser.add_argument("--segment", type=float, default=60.0, help="seconds per run (default: %(default)s)")
    campaign_parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="seed of the first run")
    campaign_parser.add_argument(
        "--limits",
        action="store_true",
        help="fail if writes recover too slowly after a nemesis; for dedicated machines",
    )
    campaign_parser.add_argument("--report", type=Path, help="write the report to this file, as JSON")
    replay_parser = commands.add_parser(
        "replay", help="check a recorded history again, and draw the shortest violating part"
    )
    replay_parser.set_defaults(does=_replay)
    replay_parser.add_argument("file", type=Path)
    replay_parser.add_argument("--svg", type=Path, help="file of the picture (default: next to the history)")
    list_parser = commands.add_parser("list", help="list clusters, workloads, nemeses and checks")
    list_parser.set_defaults(does=_list)
    return parser


def _run(arguments: argparse.Namespace) -> int:
    plan = Plan(arguments.workload, arguments.nemesis, arguments.seconds, arguments.seed)
    report = Report()
    with _children(), catalogue.cluster(arguments.cluster)() as cluster:
        print_result(run(cluster, plan), report)
    print(report)
    return 1 if report.violations else 0


def _campaign(arguments: argparse.Namespace) -> int:
    campaign = Campaign(
        arguments.cluster,
        arguments.workload or [*catalogue.WORKLOADS],
        arguments.nemesis or [*catalogue.NEMESES],
        arguments.minutes * 60,
        arguments.seed,
        arguments.segment,
    )
    report = Report()
    try:
        with _children(), contextlib.closing(campaign.runs()) as results:
            for result in results:
                print_result(result, report, slow(result.history) if arguments.limits else ())
    finally:
        print(report)
        if arguments.report:
            arguments.report.write_text(json.dumps(report.as_json(), indent=2))
    return 1 if report.violations else 0


@contextlib.contextmanager
def _children() -> Iterator[None]:
    """Stop all child processes at the end of the block."""
    children.begin_run()
    try:
        yield
    finally:
        children.end_run()


def print_result(result: Result, report: Report, slow: Sequence[Violation] = ()) -> None:
    """Print the outcome of a run, and add it to the report."""
    history = result.history
    report.add(history)
    operations, events = len(history.operations), len(history.events)
    workloads = " and ".join(history.run["workloads"])
    print(f"seed {history.run['seed']}: {workloads}, {operations} operations, {events} events", flush=True)
    if "skipped" in history.run:
        print(f"    {history.run['skipped']}", flush=True)
    path = result.path or (keep(history) if slow else None)
    for violation in (*result.violations, *slow):
        sentence = f"{violation.invariant}: {violation.sentence} {[*violation.operations]}"
        report.violations.append(f"seed {history.run['seed']}: {sentence}")
        print(f"    {sentence}", flush=True)
    for undecided in result.undecided:
        sentence = f"{undecided.invariant}: {undecided.sentence} {[*undecided.operations]}"
        report.undecided.append(f"seed {history.run['seed']}: {sentence}")
        print(f"    {sentence}", flush=True)
    if path:
        print(f"    history: {path}", flush=True)


def _replay(arguments: argparse.Namespace) -> int:
    return replay(arguments.file, catalogue.checks(), arguments.svg)


def _list(_: argparse.Namespace) -> int:
    for heading, names in {
        "clusters": catalogue.CLUSTERS,
        "workloads": catalogue.WORKLOADS,
        "nemeses": catalogue.NEMESES,
        "checks": catalogue.CHECKS,
    }.items():
        print(f"{heading}: {', '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
