"""placement-manage doctor: what is wrong with configuration, database and data, and how to fix it (docs: doctor)."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NoReturn

from oslo_config import cfg

from placement import deploy, errors, extension
from placement.checks.check import Check, Subject
from placement.checks.finding import Finding, Severity
from placement.cmd import program
from placement.cmd.progress import Progress
from placement.cmd.text_table import stacked
from placement.db.connect import connect
from placement.db.database import Database
from placement.extensions.doctor import checks
from placement.extensions.doctor.document import document
from placement.extensions.doctor.examination import CheckResult, Examination, examine, run_check
from placement.extensions.doctor.fixes import FIXES, Fix

_DOES = "Find what is wrong with the configuration, the database and its data, and how to fix it."
#: Exit codes by the worst finding; those below are of commands that were not done, or whose arguments are wrong.
_CODES = {None: 0, Severity.INFO: 0, Severity.WARNING: 3, Severity.ERROR: 4}
#: The largest number of places shown in the table, and the width of its lines.
_LINES = 20
_WIDTH = 100

#: A fix, the places of the findings that it is for, and the number of rows fixed; None in a dry run.
AppliedFix = tuple[Fix, int, int | None]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``doctor``."""
    command = commands.add_parser("doctor", help=_DOES, description=_DOES)
    command.set_defaults(action=lambda conf: doctor(conf, command.error))
    command.add_argument(
        "--check",
        action="append",
        metavar="<name>",
        choices=checks.NAMES,
        default=[],
        help="make this check only; may be repeated: " + ", ".join(checks.NAMES),
    )
    command.add_argument("--json", action="store_true", help="print the findings as JSON, with every place")
    command.add_argument("--fix", action="store_true", help="show the fixes that are safe to make; change nothing")
    command.add_argument("--yes", action="store_true", help="with --fix: make these fixes, and examine again")


def doctor(conf: cfg.ConfigOpts, refuse: Callable[[str], NoReturn]) -> int:
    """Examine, fix if that is asked for, and print what is found; return the exit code by the worst finding.

    Args:
        refuse: Ends the program because of wrong arguments.
    """
    arguments = conf.command
    if arguments.yes and not arguments.fix:
        refuse("--yes requires --fix: it makes the fixes that --fix shows")
    if left_out := sorted({*arguments.check} - {check.name for check in checks.of(extension.enabled(conf))}):
        refuse(f"--check {left_out[0]} is of an extension that is not in [extensions]enabled")
    try:
        return _examine_and_fix(conf, arguments)
    except errors.Unavailable:
        # Its reason may be among what is wrong with the configuration.
        made = checks.of(extension.enabled(conf))
        without = [check.name for check in made if check.about == checks.CONFIGURATION]
        named = [name for name in without if name in arguments.check or not arguments.check]
        examination = _examined(conf, connect(conf), named) if named else None
        if examination is not None and examination.findings:
            _show(arguments, examination)
        raise


def _examine_and_fix(conf: cfg.ConfigOpts, arguments: argparse.Namespace) -> int:
    with program.connected(conf) as database:
        examination = _examined(conf, database, arguments.check)
        fixes: list[AppliedFix] = []
        if arguments.fix:
            fixes = [(fix, places, None) for fix, places in _needed(examination)]
        if arguments.yes:
            fixes = [(fix, places, _apply(conf, database, fix)) for fix, places, _ in fixes]
            examination = _examined(conf, database, arguments.check)
    _show(arguments, examination, fixes if arguments.fix else None)
    return _CODES[examination.worst]


def _show(arguments: argparse.Namespace, examination: Examination, fixes: Sequence[AppliedFix] | None = None) -> None:
    if arguments.json:
        print(json.dumps(_document(examination, fixes), indent=2))
    else:
        print(_as_table(examination, fixes))


def _examined(conf: cfg.ConfigOpts, database: Database, named: Collection[str]) -> Examination:
    found = extension.enabled(conf)
    return examine(Subject(conf, database, deploy.rules_of(found)), checks.of(found), named, run=_run)


def _run(check: Check, subject: Subject) -> CheckResult:
    with Progress(f"doctor: {check.name}", "rows") as progress:
        subject.on_rows = progress.advance
        return run_check(check, subject)


def _needed(examination: Examination) -> list[tuple[Fix, int]]:
    """Return the fixes that there are findings for, each with the number of their places."""
    places: dict[str, int] = {}
    for check, finding in examination.findings:
        if finding.fixable:
            places[check] = places.get(check, 0) + len(finding.where)
    return [(fix, places[fix.check]) for fix in FIXES if fix.check in places]


def _apply(conf: cfg.ConfigOpts, database: Database, fix: Fix) -> int:
    with Progress(f"doctor --fix: {fix.check}", "rows fixed") as progress:
        for number in fix.run(Subject(conf, database, deploy.rules_of(extension.enabled(conf)))):
            progress.advance(number)
        return progress.done


def _document(examination: Examination, fixes: Sequence[AppliedFix] | None) -> dict[str, Any]:
    shown = document(examination)
    if fixes is not None:
        shown["fixes"] = [
            {"check": fix.check, "does": fix.does, "count": places, "fixed": done} for fix, places, done in fixes
        ]
    return shown


def _as_table(examination: Examination, fixes: Sequence[AppliedFix] | None) -> str:
    blocks = [[*_finding(check, finding)] for check, finding in examination.findings] or [["No finding."]]
    if fixes is not None:
        blocks += [[*_fix(*each)] for each in fixes] or [["Nothing to fix."]]
    blocks += [[*_not_made(reason, names)] for reason, names in _left_out(examination).items()]
    return stacked(["Doctor"], *blocks)


def _left_out(examination: Examination) -> dict[str, list[str]]:
    """Return the checks that were not made, or not to their end, by the reason."""
    found: dict[str, list[str]] = {}
    for result in examination.results:
        if result.not_made is not None:
            found.setdefault(result.not_made, []).append(result.check)
    return found


def _not_made(reason: str, names: Sequence[str]) -> Iterator[str]:
    yield from _folded("Not made", ", ".join(names))
    yield from _folded("Why", reason)


def _finding(check: str, finding: Finding) -> Iterator[str]:
    yield f"{finding.severity.name.title()}: {check}"
    yield from _folded("What", finding.what)
    if finding.where:
        yield "Where:"
        yield from (f"  {place}" for place in finding.where[:_LINES])
    if len(finding.where) > _LINES:
        yield f"  and {len(finding.where) - _LINES} more: --json prints all"
    yield from _folded("Fix", finding.fix)


def _fix(fix: Fix, places: int, done: int | None) -> Iterator[str]:
    yield f"Fix: {fix.check}"
    yield from _folded("Does", fix.does)
    yield f"Would fix: {places}, with --yes" if done is None else f"Fixed: {done}"


def _folded(title: str, text: str) -> list[str]:
    lines = textwrap.wrap(f"{title}: {text}", _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [lines[0], *(f"  {line}" for line in lines[1:])]
