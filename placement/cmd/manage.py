"""placement-manage: maintenance of the database's schema and data by an operator (docs: commands)."""

from __future__ import annotations

import argparse
import functools
import logging
import sys
from collections.abc import Callable, Sequence

from oslo_config import cfg

from placement import extension
from placement.cmd import program
from placement.cmd.progress import Progress
from placement.cmd.text_table import framed
from placement.db.database import Database
from placement.db.schema import schema
from placement.db.upkeep import online, standard, sweep
from placement.db.upkeep.online import Counts
from placement.objects.claims import lease_sweep, leases

LOG = logging.getLogger(__name__)

PROG = "placement-manage"
Migration = Callable[[Database, int], Counts]
#: Rows per batch without --max-count.
_BATCH_SIZE = 50

# Exit codes of online_data_migrations.
_MORE_TO_DO = 1
_FAILED = 2
_BAD_COUNT = 127
#: The exit code of "leases sweep" if more leases are due.
_LEASES_LEFT = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    code = program.exit_code(PROG, lambda: _run(argv or ["--help"]), failed=1)
    return code if argv else 1


def _run(argv: Sequence[str]) -> int:
    conf = program.read_configuration(PROG, argv, _add_commands)
    if conf.command.name is None:
        conf.print_help()
        return 1
    origin = getattr(conf.command, "extension", None)
    if origin is not None and origin not in extension.enabled(conf):
        raise cfg.Error(f"{conf.command.name}: the extension {origin.name} is not in [extensions]enabled.")
    action: Callable[[cfg.ConfigOpts], int] = conf.command.action
    return action(conf)


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    commands.required = False  # without a command, main shows the help
    db = commands.add_parser("db", help="maintain the database")
    db.set_defaults(action=lambda _: _show_help(db))
    actions = db.add_subparsers(title="actions", dest="db_action")

    def add(name: str, action: Callable[[cfg.ConfigOpts], int], description: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=description, description=description)
        parser.set_defaults(action=action)
        return parser

    add("sync", sync, "Upgrade the schema to the newest revision.")
    add("version", version, "Show the revision of the schema.")
    add("stamp", stamp, "Record a revision without changing the schema.").add_argument(
        "revision", help='a revision id, or "head"'
    )
    release_parser = add(
        "release", release, "Downgrade the schema to a revision that another Placement implementation supports."
    )
    release_parser.add_argument(
        "--force", action="store_true", help="proceed even if a process of this service has written recently"
    )
    for declaration in extension.installed_extensions().values():
        if declaration.schema and declaration.schema().losses:
            release_parser.add_argument(
                f"--discard-{declaration.name}",
                action="append_const",
                dest="discarded",
                const=declaration,
                help=f"proceed even if this loses rows of the extension {declaration.name} that cannot be restored",
            )
    release_parser.add_argument(
        "--discard-leases",
        action="store_true",
        help="proceed even if there are leases: they no longer expire, and clients must release them",
    )
    release_parser.add_argument(
        "--revision",
        metavar="<id>",
        default=schema.COMMON_HEADS[0],
        choices=schema.COMMON_HEADS,
        help="the newest revision that the other implementation supports: %(choices)s (default: the first)",
    )
    add(
        "restored",
        mark_restored,
        "Make all workers reload their index, after a backup was restored or rows were changed by hand.",
    )
    add(
        "online_data_migrations", online_data_migrations, "Complete rows that an older Placement left incomplete."
    ).add_argument("--max-count", metavar="<n>", help="the maximum number of rows to change (default: all)")
    add(
        "sweep",
        sweep_names,
        "Remove unused projects, users, consumer types and aggregates, and obsolete rows of extensions.",
    ).add_argument(
        "--grace",
        metavar="<seconds>",
        type=functools.partial(program.number, minimum=0),
        default=sweep.GRACE,
        help="remove rows marked by a sweep at least this long ago; must exceed the longest transaction "
        "(default: %(default)s)",
    )
    _add_leases(commands)
    for declaration in extension.installed_extensions().values():
        if declaration.commands:
            earlier = {*commands.choices}
            declaration.commands(commands)
            for name in {*commands.choices} - earlier:
                commands.choices[name].set_defaults(extension=declaration)


def _add_leases(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("leases", help="maintain leases")
    parser.set_defaults(action=lambda _: _show_help(parser))
    description = "Release expired leases.  Any number of sweeps may run beside the service."
    actions = parser.add_subparsers(title="actions", dest="leases_action")
    sweep_parser = actions.add_parser("sweep", help=description, description=description)
    sweep_parser.set_defaults(action=sweep_leases)
    sweep_parser.add_argument(
        "--max-rows",
        metavar="<n>",
        type=program.number,
        help="the maximum number of leases to release (default: all)",
    )


def _show_help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def sync(conf: cfg.ConfigOpts) -> int:
    """Upgrade the schema to the newest revision."""
    with program.connected(conf) as database, Progress("db sync"):
        schema.sync(database.engine, additions=extension.additions(conf))
    return 0


def version(conf: cfg.ConfigOpts) -> int:
    """Print the revision of the schema."""
    with program.connected(conf) as database:
        print(schema.version(database.reading_engine))
    return 0


def stamp(conf: cfg.ConfigOpts) -> int:
    """Record a revision without changing the schema."""
    with program.connected(conf) as database:
        schema.stamp(database.engine, conf.command.revision)
    return 0


def release(conf: cfg.ConfigOpts) -> int:
    """Downgrade the schema to a revision that another Placement implementation supports."""
    with program.connected(conf) as database, Progress("db release"):
        schema.release(
            database.engine,
            conf.command.revision,
            force=conf.command.force,
            discard_leases=conf.command.discard_leases,
            additions=extension.additions_of(extension.installed_extensions().values()),
            discarded=extension.additions_of(getattr(conf.command, "discarded", None) or ()),
        )
    return 0


def sweep_names(conf: cfg.ConfigOpts) -> int:
    """Remove unused names that an earlier sweep has marked, mark other unused names, and print the numbers."""
    with program.connected(conf) as database, Progress("db sweep"):
        extensions = extension.enabled(conf)
        schema.require_current(database.reading_engine, extension.additions_of(extensions))
        swept = sweep.sweep(database, conf.command.grace)
        for declaration in extensions:
            swept += declaration.swept(database) if declaration.swept else ()
    print(framed(("Table", "Removed", "Marked"), *((row.table, row.removed, row.marked) for row in swept)))
    return 0


def sweep_leases(conf: cfg.ConfigOpts) -> int:
    """Release expired leases, print their number, and return the exit code (docs: leases)."""
    with program.connected(conf) as database, Progress("leases sweep", "leases released") as progress:
        schema.require_current(database.reading_engine, extension.additions(conf))
        complete = lease_sweep.sweep(database, conf.command.max_rows, released=progress.advance)
        remaining = 0 if complete else database.read(leases.count_expired)
    print(framed(("Leases", "Number"), ("released", progress.done), ("still due", remaining)))
    return 0 if complete else _LEASES_LEFT


def mark_restored(conf: cfg.ConfigOpts) -> int:
    """Make all workers reload their index, and insert missing standard rows."""
    with program.connected(conf) as database:
        schema.require_current(database.engine)
        standard.renew(database)
    return 0


def online_data_migrations(conf: cfg.ConfigOpts) -> int:
    """Run the migrations in batches, and print the numbers of rows."""
    limit = conf.command.max_count
    if limit is not None and not (limit.isdecimal() and int(limit) > 0):
        print("Must supply a positive value for max_count")
        return _BAD_COUNT
    with program.connected(conf) as database, Progress("db online_data_migrations", "rows migrated") as progress:
        if schema.state(database.reading_engine) is schema.State.MISSING:
            print(f"{PROG}: {schema.finding(database.reading_engine)}", file=sys.stderr)
            return _FAILED  # not _MORE_TO_DO, after which scripts repeat the command
        return _migrate(database, _migrations(conf), None if limit is None else int(limit), progress)


def _migrations(conf: cfg.ConfigOpts) -> dict[str, Migration]:
    owner = conf.placement.incomplete_consumer_project_id, conf.placement.incomplete_consumer_user_id
    return {
        "set_root_provider_ids": online.set_root_provider_ids,
        "create_incomplete_consumers": online.IncompleteConsumers(*owner),
    }


def _migrate(database: Database, migrations: dict[str, Migration], limit: int | None, progress: Progress) -> int:
    """Run one batch of ``limit`` rows, or without a limit batches until one changes nothing; return the exit code."""
    if limit is None:
        print(f"Running batches of {_BATCH_SIZE} until complete")
    totals: dict[str, Counts] = {}
    progressed, failed = True, False
    while progressed:
        batch, failed = _run_batch(database, migrations, limit or _BATCH_SIZE)
        totals.update({name: totals.get(name, Counts()) + counts for name, counts in batch.items()})
        progressed = any(counts.done for counts in batch.values())
        progress.advance(sum(counts.done for counts in batch.values()))
        if limit is not None:
            break
    rows = [(name, counts.found, counts.done) for name, counts in totals.items()]
    print(framed(("Migration", "Total Found", "Completed"), *rows))
    if failed and not progressed:
        print("Some migrations failed unexpectedly. Check log for details.")
        return _FAILED
    return _MORE_TO_DO if progressed else 0


def _run_batch(database: Database, migrations: dict[str, Migration], limit: int) -> tuple[dict[str, Counts], bool]:
    """Run each migration once, on ``limit`` rows in total; return their counts and whether one failed."""
    ran: dict[str, Counts] = {}
    failed = False
    for name, migration in migrations.items():
        if limit <= 0:
            break
        ran[name] = Counts()
        try:
            ran[name] = migration(database, limit)
        except Exception:  # the other migrations still run
            LOG.exception("Error attempting to run %s", name)
            print(f"Error attempting to run {name}")
            failed = True
        if ran[name].found:
            print(f"{ran[name].found} rows matched query {name}, {ran[name].done} migrated")
        limit -= ran[name].done
    return ran, failed


if __name__ == "__main__":
    sys.exit(main())
