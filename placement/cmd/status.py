"""placement-status: checks of the data and the configuration (docs: commands)."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Sequence

from oslo_config import cfg

from placement import deploy, errors, extension
from placement.checks import configuration, over_commitment
from placement.checks.check import NotMadeError, Subject
from placement.checks.finding import Finding, Severity
from placement.cmd import program
from placement.cmd.progress import Progress
from placement.cmd.text_table import stacked
from placement.db.database import Database
from placement.db.schema import schema
from placement.db.upkeep import online
from placement.db.writes.transaction import Reading
from placement.objects.provider import ResourceProvider

PROG = "placement-status"
TITLE = "Upgrade Check Results"
#: The exit code if the checks could not run.
BROKEN = 255
#: The largest number of places shown in the table, and the width of its lines.
_LINES = 20
_WIDTH = 60


class Level(enum.IntEnum):
    """The result of a check; the worst one is the exit code."""

    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


_LEVELS = {Severity.WARNING: Level.WARNING, Severity.ERROR: Level.FAILURE}


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """The result of a check: its level, a sentence, and the places that it is about."""

    level: Level = Level.SUCCESS
    sentence: str | None = None
    places: tuple[str, ...] = ()


def missing_roots(_: cfg.ConfigOpts, database: Database) -> Result:
    """Check that every provider has a root."""
    sentence = "Resource providers without a root provider id: {count}."
    return _to_be_migrated(database, ROOTS, online.rootless, Level.FAILURE, sentence)


def incomplete_consumers(_: cfg.ConfigOpts, database: Database) -> Result:
    """Check that every consumer of an allocation has a row."""
    sentence = "There are {count} incomplete consumers table records for existing allocations."
    return _to_be_migrated(database, CONSUMERS, online.ownerless, Level.WARNING, sentence)


def _to_be_migrated(
    database: Database, check: str, rows: Callable[[Reading], int], level: Level, sentence: str
) -> Result:
    """Check that there are no rows which an online data migration would complete."""
    with Progress(check):
        count = database.read(rows)
    if not count:
        return Result()
    return Result(
        level, f'{sentence.format(count=count)} Run the "placement-manage db online_data_migrations" command.'
    )


def policy_format(conf: cfg.ConfigOpts, database: Database) -> Result:
    """Check that the policy file is YAML."""
    return _examined(configuration.policy_in_json, conf, database)


def policy_mistakes(conf: cfg.ConfigOpts, database: Database) -> Result:
    """Check that the rules of the policy can be parsed, and that the service knows them."""
    return _examined(configuration.policy_mistakes, conf, database)


def misspelt_options(conf: cfg.ConfigOpts, database: Database) -> Result:
    """Check that the configuration has no options that the service does not know."""
    return _examined(configuration.unknown_options, conf, database)


def identity_service(conf: cfg.ConfigOpts, database: Database) -> Result:
    """Check that the Identity service accepts the service's own user, if it validates tokens."""
    with Progress(IDENTITY):
        return _examined(configuration.identity_service, conf, database)


def used_above_capacity(conf: cfg.ConfigOpts, database: Database) -> Result:
    """Check that usage exceeds capacity nowhere."""
    with Progress(ABOVE, "providers", database.read(ResourceProvider.count)) as progress:
        return _examined(over_commitment.over_commitment, conf, database, progress.advance)


def _examined(
    check: Callable[[Subject], Iterable[Finding]],
    conf: cfg.ConfigOpts,
    database: Database,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Result:
    """Return the first finding of a check."""
    rules = deploy.rules_of(extension.enabled(conf))
    try:
        found = next(iter(check(Subject(conf, database, rules, on_rows=on_rows))), None)
    except NotMadeError:
        found = None
    return Result() if found is None else Result(_LEVELS[found.severity], found.what, found.where)


ROOTS = "Missing Root Provider IDs"
CONSUMERS = "Incomplete Consumers"
POLICY = "Policy File JSON to YAML Migration"
RULES = "Policy Rules"
MISSPELT = "Misspelt Options"
IDENTITY = "Identity Service"
ABOVE = "Used Above Capacity"
CHECKS: dict[str, Callable[[cfg.ConfigOpts, Database], Result]] = {
    ROOTS: missing_roots,
    CONSUMERS: incomplete_consumers,
    POLICY: policy_format,
    RULES: policy_mistakes,
    MISSPELT: misspelt_options,
    IDENTITY: identity_service,
    ABOVE: used_above_capacity,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checks; return the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        return program.exit_code(PROG, lambda: _run(argv), failed=BROKEN)
    except SystemExit as done:
        # argparse has printed help, version or usage.
        return int(done.code or 0)
    except Exception:
        traceback.print_exc()
        return BROKEN


def _run(argv: Sequence[str]) -> int:
    conf = program.configured(PROG, argv, _add_commands)
    with program.connected(conf) as database:
        if schema.state(database.reading_engine) is schema.State.MISSING:
            raise errors.SchemaError(str(schema.finding(database.reading_engine)))
        results = {name: check(conf, database) for name, check in CHECKS.items()}
    print(_as_json(results) if conf.command.json else _as_table(results))
    return max(result.level for result in results.values())


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    commands.required = True
    upgrade = commands.add_parser("upgrade", help="checks before an upgrade")
    upgrade.add_argument("check", choices=["check"], help="check data and configuration")
    upgrade.add_argument("--json", action="store_true", help="print the results as JSON, with every detail")


def _as_table(results: dict[str, Result]) -> str:
    blocks = [
        [f"Check: {name}", f"Result: {result.level.name.title()}", *_details(result)]
        for name, result in results.items()
    ]
    return stacked([TITLE], *blocks)


def _details(result: Result) -> list[str]:
    first, *rest = textwrap.wrap(str(result.sentence), _WIDTH)
    shown = result.places[:_LINES]
    if len(result.places) > _LINES:
        shown = (*shown, f"and {len(result.places) - _LINES} more: --json prints all")
    return [f"Details: {first}", *(f"  {line}" for line in (*rest, *shown))]


def _as_json(results: dict[str, Result]) -> str:
    checks = [
        {
            "check": name,
            "result": result.level.name.title(),
            "details": result.sentence,
            "places": list(result.places),
        }
        for name, result in results.items()
    ]
    return json.dumps({"name": TITLE, "checks": checks}, indent=2)


if __name__ == "__main__":
    sys.exit(main())
