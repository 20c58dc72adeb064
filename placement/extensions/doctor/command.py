"""``placement-manage doctor``: find and fix problems in a configuration, a database and its data (docs: doctor)."""

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
from placement.cmd.text_table import stack
from placement.db.connect import connect
from placement.db.database import Database
from placement.extensions.doctor import checks
from placement.extensions.doctor.document import document
from placement.extensions.doctor.examination import CheckResult, Examination, examine, run_check
from placement.extensions.doctor.fixes import FIXES, Fix

_SUMMARY = "Find problems in the configuration, the database and its data, and show how to fix them."
#: Exit codes by the severity of the worst finding; 1 and 2 are for failures and wrong arguments.
_CODES = {None: 0, Severity.INFO: 0, Severity.WARNING: 3, Severity.ERROR: 4}
#: Maximum number of places shown per finding.
_MAX_PLACES = 20
#: Characters per line.
_WIDTH = 100

#: A fix, the number of places of its findings, and the number of rows fixed (None in a dry run).
AppliedFix = tuple[Fix, int, int | None]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the ``doctor`` command."""
    command = commands.add_parser("doctor", help=_SUMMARY, description=_SUMMARY)
    command.set_defaults(action=lambda conf: doctor(conf, command.error))
    command.add_argument(
        "--check",
        action="append",
        metavar="<name>",
        choices=checks.NAMES,
        default=[],
        help="run this check only; repeatable: " + ", ".join(checks.NAMES),
    )
    command.add_argument("--json", action="store_true", help="print the findings as JSON, with all places")
    command.add_argument("--fix", action="store_true", help="show the fixes that are safe to apply; change nothing")
    command.add_argument("--yes", action="store_true", help="with --fix: apply these fixes, and run the checks again")


def doctor(conf: cfg.ConfigOpts, refuse: Callable[[str], NoReturn]) -> int:
    """Run the checks, apply fixes on request, print the findings, and return the exit code.

    Args:
        refuse: A function that ends the process with a message about wrong arguments.
    """
    arguments = conf.command
    if arguments.yes and not arguments.fix:
        refuse("--yes requires --fix: it applies the fixes that --fix shows")
    if disabled := sorted({*arguments.check} - {check.name for check in checks.all_checks(extension.enabled(conf))}):
        refuse(f"--check {disabled[0]} belongs to an extension that is not in [extensions]enabled")
    try:
        return _examine_and_fix(conf, arguments)
    except errors.Unavailable:
        # A mistake in the configuration may be the reason; the checks of the configuration need no database.
        enabled = checks.all_checks(extension.enabled(conf))
        names = [check.name for check in enabled if check.about == checks.CONFIGURATION]
        names = [name for name in names if name in arguments.check or not arguments.check]
        examination = _examine(conf, connect(conf), names) if names else None
        if examination is not None and examination.findings:
            _show(arguments, examination)
        raise


def _examine_and_fix(conf: cfg.ConfigOpts, arguments: argparse.Namespace) -> int:
    with program.connected(conf) as database:
        examination = _examine(conf, database, arguments.check)
        fixes: list[AppliedFix] = []
        if arguments.fix:
            fixes = [(fix, places, None) for fix, places in _needed_fixes(examination)]
        if arguments.yes:
            fixes = [(fix, places, _apply(conf, database, fix)) for fix, places, _ in fixes]
            examination = _examine(conf, database, arguments.check)
    _show(arguments, examination, fixes if arguments.fix else None)
    return _CODES[examination.worst]


def _show(arguments: argparse.Namespace, examination: Examination, fixes: Sequence[AppliedFix] | None = None) -> None:
    if arguments.json:
        print(json.dumps(_document(examination, fixes), indent=2))
    else:
        print(_as_table(examination, fixes))


def _examine(conf: cfg.ConfigOpts, database: Database, names: Collection[str]) -> Examination:
    extensions = extension.enabled(conf)
    subject = Subject(conf, database, deploy.rules_of(extensions), store=deploy.index_store(conf))
    return examine(subject, checks.all_checks(extensions), names, run=_run)


def _run(check: Check, subject: Subject) -> CheckResult:
    with Progress(f"doctor: {check.name}", "rows") as progress:
        subject.on_rows = progress.advance
        return run_check(check, subject)


def _needed_fixes(examination: Examination) -> list[tuple[Fix, int]]:
    """Return the fixes for the findings, each with the number of its places."""
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
    result = document(examination)
    if fixes is not None:
        result["fixes"] = [
            {"check": fix.check, "does": fix.description, "count": places, "fixed": rows_fixed}
            for fix, places, rows_fixed in fixes
        ]
    return result


def _as_table(examination: Examination, fixes: Sequence[AppliedFix] | None) -> str:
    blocks = [[*_finding(check, finding)] for check, finding in examination.findings] or [["No findings."]]
    if fixes is not None:
        blocks += [[*_fix(*entry)] for entry in fixes] or [["Nothing to fix."]]
    blocks += [[*_skipped_lines(reason, names)] for reason, names in _incomplete_checks(examination).items()]
    return stack(["Doctor"], *blocks)


def _incomplete_checks(examination: Examination) -> dict[str, list[str]]:
    """Return the names of the checks that did not complete, by reason."""
    names: dict[str, list[str]] = {}
    for result in examination.results:
        if result.not_made is not None:
            names.setdefault(result.not_made, []).append(result.check)
    return names


def _skipped_lines(reason: str, names: Sequence[str]) -> Iterator[str]:
    yield from _fold("Skipped", ", ".join(names))
    yield from _fold("Why", reason)


def _finding(check: str, finding: Finding) -> Iterator[str]:
    yield f"{finding.severity.name.title()}: {check}"
    yield from _fold("What", finding.what)
    if finding.where:
        yield "Where:"
        yield from (f"  {place}" for place in finding.where[:_MAX_PLACES])
    if len(finding.where) > _MAX_PLACES:
        yield f"  and {len(finding.where) - _MAX_PLACES} more: --json prints all"
    yield from _fold("Fix", finding.fix)


def _fix(fix: Fix, places: int, rows_fixed: int | None) -> Iterator[str]:
    yield f"{'Available' if rows_fixed is None else 'Applied'} fix: {fix.check}"
    yield from _fold("Does", fix.description)
    yield f"Places: {places}; --yes applies the fix" if rows_fixed is None else f"Rows fixed: {rows_fixed}"


def _fold(title: str, text: str) -> list[str]:
    lines = textwrap.wrap(f"{title}: {text}", _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [lines[0], *(f"  {line}" for line in lines[1:])]
