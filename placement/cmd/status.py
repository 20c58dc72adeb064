"""placement-status: checks of the data and the configuration (docs: commands)."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence

from placement import deploy, errors, extension
from placement.checks import configuration, over_commitment
from placement.checks.check import NotMadeError, Subject
from placement.checks.finding import Finding, Severity, error, warning
from placement.cmd import program
from placement.cmd.progress import Progress
from placement.cmd.text_table import stack
from placement.db.schema import schema
from placement.db.upkeep import online
from placement.objects.provider import ResourceProvider

PROG = "placement-status"
TITLE = "Upgrade Check Results"
#: The exit code if the checks could not run.
BROKEN = 255
#: Places shown per check in the table; characters per line.
_MAX_PLACES = 20
_WIDTH = 60
_MIGRATE = 'Run the "placement-manage db online_data_migrations" command.'
#: The result of a check by the severity of its finding, which is also the exit code.
_LEVELS = {Severity.WARNING: "Warning", Severity.ERROR: "Failure"}
#: The first finding of each check; None without a finding, or if the check does not apply.
Results = dict[str, Finding | None]


def missing_roots(subject: Subject) -> Iterator[Finding]:
    """Find providers without a root provider."""
    if count := subject.database.read(online.count_rootless):
        yield error(f"Resource providers without a root provider id: {count}. {_MIGRATE}")


def incomplete_consumers(subject: Subject) -> Iterator[Finding]:
    """Find allocations whose consumer has no row."""
    if count := subject.database.read(online.count_ownerless):
        yield warning(f"There are {count} incomplete consumers table records for existing allocations. {_MIGRATE}")


USED_ABOVE_CAPACITY = "Used Above Capacity"
#: The checks, by the names that deployment tools expect.
CHECKS: dict[str, Callable[[Subject], Iterable[Finding]]] = {
    "Missing Root Provider IDs": missing_roots,
    "Incomplete Consumers": incomplete_consumers,
    "Policy File JSON to YAML Migration": configuration.policy_in_json,
    "Policy Rules": configuration.policy_mistakes,
    "Misspelt Options": configuration.unknown_options,
    "Identity Service": configuration.identity_service,
    USED_ABOVE_CAPACITY: over_commitment.over_commitment,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checks; return the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        return program.exit_code(PROG, lambda: _run(argv), failed=BROKEN)
    except Exception:
        traceback.print_exc()
        return BROKEN


def _run(argv: Sequence[str]) -> int:
    conf = program.read_configuration(PROG, argv, _add_commands)
    with program.connected(conf) as database:
        if schema.state(database.reading_engine) is schema.State.MISSING:
            raise errors.SchemaError(str(schema.finding(database.reading_engine)))
        rules = deploy.rules_of(extension.enabled(conf))
        results = {name: _first_finding(name, Subject(conf, database, rules)) for name in CHECKS}
    print(_as_json(results) if conf.command.json else _as_table(results))
    return max((finding.severity for finding in results.values() if finding), default=0)


def _first_finding(name: str, subject: Subject) -> Finding | None:
    unit_and_total = ("providers", subject.database.read(ResourceProvider.count)) if name == USED_ABOVE_CAPACITY else ()
    with Progress(name, *unit_and_total) as progress:
        subject.on_rows = progress.advance
        try:
            return next(iter(CHECKS[name](subject)), None)
        except NotMadeError:
            return None


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    commands.required = True
    upgrade = commands.add_parser("upgrade", help="checks before an upgrade")
    upgrade.add_argument("check", choices=["check"], help="check data and configuration")
    upgrade.add_argument("--json", action="store_true", help="print the results as JSON, with every detail")


def _as_table(results: Results) -> str:
    blocks = [[f"Check: {name}", f"Result: {_level(finding)}", *_details(finding)] for name, finding in results.items()]
    return stack([TITLE], *blocks)


def _level(finding: Finding | None) -> str:
    return _LEVELS[finding.severity] if finding else "Success"


def _details(finding: Finding | None) -> list[str]:
    if finding is None:
        return ["Details: None"]
    first, *continuation = textwrap.wrap(finding.what, _WIDTH)
    places = finding.where[:_MAX_PLACES]
    if len(finding.where) > _MAX_PLACES:
        places = (*places, f"and {len(finding.where) - _MAX_PLACES} more: --json prints all")
    return [f"Details: {first}", *(f"  {line}" for line in (*continuation, *places))]


def _as_json(results: Results) -> str:
    checks = [
        {
            "check": name,
            "result": _level(finding),
            "details": finding.what if finding else None,
            "places": list(finding.where) if finding else [],
        }
        for name, finding in results.items()
    ]
    return json.dumps({"name": TITLE, "checks": checks}, indent=2)


if __name__ == "__main__":
    sys.exit(main())
