"""``placement-manage load``: load providers, inventories, traits and aggregates from a file (docs: load)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from oslo_config import cfg

from placement import extension
from placement.cmd import program
from placement.cmd.progress import Progress
from placement.cmd.text_table import framed
from placement.db.database import Database
from placement.db.schema import schema
from placement.db.upkeep import standard
from placement.extensions.loading.description import ProviderEntry, read_entries
from placement.extensions.loading.plan import LoadPlan
from placement.extensions.loading.writing import load
from placement.extensions.loading.yaml_source import InvalidFile, YamlSource

#: Maximum number of mistakes shown.
_MAX_FINDINGS = 50
_SUMMARY = "Create and change providers, inventories, traits and aggregates as described in a YAML file."


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the ``load`` command."""
    parser = commands.add_parser("load", help=_SUMMARY, description=_SUMMARY)
    parser.set_defaults(action=load_file)
    parser.add_argument("file", metavar="FILE", help='the YAML file; "-" is stdin')
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")


def load_file(conf: cfg.ConfigOpts) -> int:
    """Load the file, print the changes or the mistakes in the file, and return the exit code."""
    arguments = conf.command
    try:
        entries = read_entries(YamlSource(_read(arguments.file)))
        with program.connected(conf) as database:
            schema.require_current(database.reading_engine, extension.additions(conf))
            plan = _load(database, entries, dry_run=arguments.dry_run)
    except InvalidFile as invalid:
        _print_findings(arguments.file, invalid)
        return 1
    except (OSError, UnicodeDecodeError) as error:
        print(f"placement-manage: {arguments.file} cannot be read: {error}", file=sys.stderr)
        return 1
    _print_plan(plan)
    if arguments.dry_run:
        print("Dry run: nothing was written.")
    return 0


def _read(file: str) -> str:
    return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")


def _load(database: Database, entries: Sequence[ProviderEntry], *, dry_run: bool) -> LoadPlan:
    standard.insert(database)  # the standard traits are missing until a service has started on the database
    with Progress("load", "providers") as progress:
        return load(database, entries, dry_run=dry_run, advance=progress.advance)


def _print_findings(file: str, invalid: InvalidFile) -> None:
    for finding in invalid.findings[:_MAX_FINDINGS]:
        print(f"{file}:{finding.line}: {finding.text}", file=sys.stderr)
    if len(invalid.findings) > _MAX_FINDINGS:
        print(f"and {len(invalid.findings) - _MAX_FINDINGS} more", file=sys.stderr)
    print("placement-manage: nothing was written.", file=sys.stderr)


def _print_plan(plan: LoadPlan) -> None:
    for line in plan.lines():
        print(line)
    new = sum(change.record is None for change in plan.changes)
    rows = (
        ("new", new),
        ("changed", len(plan.changes) - new),
        ("unchanged", len(plan.providers) - len(plan.changes)),
    )
    print(framed(("Providers", "Number"), *rows))
