"""placement-manage leases: claims with an end (docs: leases)."""

from __future__ import annotations

import argparse

from oslo_config import cfg

from placement import extension
from placement.cmd import program
from placement.cmd.progress import Progress
from placement.cmd.text_table import framed
from placement.db.schema import schema
from placement.objects.claims import lease_sweep, leases

#: The exit code if more leases are due.
_MORE_TO_DO = 3
_LEASES = "claims with an end"
_SWEEP = "Give back what leases hold whose time is over.  Any number of sweeps may run beside the service."


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``leases`` with its actions."""
    group = commands.add_parser("leases", help=_LEASES)
    group.set_defaults(action=lambda _: _show_help(group))
    actions = group.add_subparsers(title="actions", dest="leases_action")
    sweeping = actions.add_parser("sweep", help=_SWEEP, description=_SWEEP)
    sweeping.set_defaults(action=sweep)
    sweeping.add_argument(
        "--max-rows",
        metavar="<n>",
        type=program.number,
        help="the largest number of leases to give back (default: all)",
    )


def _show_help(group: argparse.ArgumentParser) -> int:
    group.print_help()
    return 0


def sweep(conf: cfg.ConfigOpts) -> int:
    """Give back what expired leases hold, and print their number; return the exit code."""
    with program.connected(conf) as database, Progress("leases sweep", "leases given back") as progress:
        schema.require_current(database.reading_engine, extension.additions(conf))
        numbers: list[int] = []

        def given_back(number: int) -> None:
            numbers.append(number)
            progress.advance(number)

        complete = lease_sweep.sweep(database, conf.command.max_rows, given_back=given_back)
        left = 0 if complete else database.read(leases.count_due)
    print(framed(("Leases", "Number"), ("given back", sum(numbers)), ("still due", left)))
    return 0 if complete else _MORE_TO_DO
