"""placement-manage: changes of the database's schema and data by an operator (docs: commands)."""

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
#: Rows in a batch without --max-count.
_BATCH = 50

# Exit codes of online_data_migrations.
_MORE_TO_DO = 1
_FAILED = 2
_BAD_COUNT = 127
#: The exit code of leases sweep if more leases are due.
_LEASES_LEFT = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    code = program.exit_code(PROG, lambda: _run(argv or ["--help"]), failed=1)
    return code if argv else 1


def _run(argv: Sequence[str]) -> int:
    conf = program.configured(PROG, argv, _add_commands)
    if conf.command.name is None:
        conf.print_help()
        return 1
    of = getattr(conf.command, "extension", None)
    if of is not None and of not in extension.enabled(conf):
        raise cfg.Error(f"{conf.command.name}: the extension {of.name} is not in [extensions]enabled.")
    action: Callable[[cfg.ConfigOpts], int] = conf.command.action
    return action(conf)


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    commands.required = False  # without one, main shows the help
    db = commands.add_parser("db", help="changes of the database")
    db.set_defaults(action=lambda _: _show_help(db))
    actions = db.add_subparsers(title="actions", dest="db_action")

    def add(name: str, action: Callable[[cfg.ConfigOpts], int], does: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=does, description=does)
        parser.set_defaults(action=action)
        return parser

    add("sync", sync, "Upgrade the schema to the newest revision.")
    add("version", version, "Show the revision of the schema.")
    add("stamp", stamp, "Record a revision, and change nothing else.").add_argument(
        "revision", help='a revision id, or "head"'
    )
    giving_back = add("release", release, "Downgrade the schema to what another Placement implementation knows.")
    giving_back.add_argument(
        "--force", action="store_true", help="do it even if a process of this service wrote a short time ago"
    )
    for each in extension.installed().values():
        if each.schema and each.schema().losses:
            giving_back.add_argument(
                f"--discard-{each.name}",
                action="append_const",
                dest="discarded",
                const=each,
                help=f"do it even if rows of the extension {each.name} are lost, which cannot be made again",
            )
    giving_back.add_argument(
        "--discard-leases",
        action="store_true",
        help="do it even if there are claims with an end: what they hold stays until a client releases it",
    )
    giving_back.add_argument(
        "--revision",
        metavar="<id>",
        default=schema.COMMON_HEADS[0],
        choices=schema.COMMON_HEADS,
        help="the newest revision that the other implementation knows: %(choices)s (default: the first)",
    )
    add(
        "restored",
        restored,
        "Have all workers read everything again, after a backup was restored or rows were changed by hand.",
    )
    add(
        "online_data_migrations", online_data_migrations, "Complete rows that an older Placement left incomplete."
    ).add_argument("--max-count", metavar="<n>", help="the largest number of rows to change (default: all)")
    add(
        "sweep",
        sweep_names,
        "Remove unused projects, users, consumer types and aggregates, and what extensions no longer need.",
    ).add_argument(
        "--grace",
        metavar="<seconds>",
        type=functools.partial(program.number, least=0),
        default=sweep.GRACE,
        help="remove rows that an earlier sweep marked at least so long ago; longer than any transaction lasts "
        "(default: %(default)s)",
    )
    _add_leases(commands)
    for each in extension.installed().values():
        if each.commands:
            others = {*commands.choices}
            each.commands(commands)
            for name in {*commands.choices} - others:
                commands.choices[name].set_defaults(extension=each)


def _add_leases(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    group = commands.add_parser("leases", help="claims with an end")
    group.set_defaults(action=lambda _: _show_help(group))
    does = "Give back what leases hold whose time is over.  Any number of sweeps may run beside the service."
    actions = group.add_subparsers(title="actions", dest="leases_action")
    sweeping = actions.add_parser("sweep", help=does, description=does)
    sweeping.set_defaults(action=sweep_leases)
    sweeping.add_argument(
        "--max-rows",
        metavar="<n>",
        type=program.number,
        help="the largest number of leases to give back (default: all)",
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
    """Record a revision."""
    with program.connected(conf) as database:
        schema.stamp(database.engine, conf.command.revision)
    return 0


def release(conf: cfg.ConfigOpts) -> int:
    """Downgrade the schema to what another Placement implementation knows."""
    with program.connected(conf) as database, Progress("db release"):
        schema.release(
            database.engine,
            conf.command.revision,
            force=conf.command.force,
            discard_leases=conf.command.discard_leases,
            additions=extension.additions_of(extension.installed().values()),
            discarded=extension.additions_of(getattr(conf.command, "discarded", None) or ()),
        )
    return 0


def sweep_names(conf: cfg.ConfigOpts) -> int:
    """Remove the names that an earlier sweep marked, mark those that are unused now, and print the numbers."""
    with program.connected(conf) as database, Progress("db sweep"):
        extensions = extension.enabled(conf)
        schema.require_current(database.reading_engine, extension.additions_of(extensions))
        swept = sweep.sweep(database, conf.command.grace)
        for each in extensions:
            swept += each.swept(database) if each.swept else ()
    print(framed(("Table", "Removed", "Marked"), *((of.table, of.removed, of.marked) for of in swept)))
    return 0


def sweep_leases(conf: cfg.ConfigOpts) -> int:
    """Give back what expired leases hold, and print their number; return the exit code (docs: leases)."""
    with program.connected(conf) as database, Progress("leases sweep", "leases given back") as progress:
        schema.require_current(database.reading_engine, extension.additions(conf))
        complete = lease_sweep.sweep(database, conf.command.max_rows, released=progress.advance)
        left = 0 if complete else database.read(leases.count_expired)
    print(framed(("Leases", "Number"), ("given back", progress.done), ("still due", left)))
    return 0 if complete else _LEASES_LEFT


def restored(conf: cfg.ConfigOpts) -> int:
    """Have all workers read everything again, and insert missing standard rows."""
    with program.connected(conf) as database:
        schema.require_current(database.engine)
        standard.renew(database)
    return 0


def online_data_migrations(conf: cfg.ConfigOpts) -> int:
    """Run the migrations in batches, and print what they did."""
    limit = conf.command.max_count
    if limit is not None and not (limit.isdecimal() and int(limit) > 0):
        print("Must supply a positive value for max_count")
        return _BAD_COUNT
    with program.connected(conf) as database, Progress("db online_data_migrations", "rows migrated") as progress:
        if schema.state(database.reading_engine) is schema.State.MISSING:
            print(f"{PROG}: {schema.finding(database.reading_engine)}", file=sys.stderr)
            return _FAILED  # scripts run the command again after _MORE_TO_DO
        return _migrate(database, _migrations(conf), None if limit is None else int(limit), progress)


def _migrations(conf: cfg.ConfigOpts) -> dict[str, Migration]:
    owner = conf.placement.incomplete_consumer_project_id, conf.placement.incomplete_consumer_user_id
    return {
        "set_root_provider_ids": online.set_root_provider_ids,
        "create_incomplete_consumers": online.IncompleteConsumers(*owner),
    }


def _migrate(database: Database, migrations: dict[str, Migration], limit: int | None, progress: Progress) -> int:
    """Run one batch of ``limit`` rows, or batches until one changes nothing; return the exit code."""
    if limit is None:
        print(f"Running batches of {_BATCH} until complete")
    totals: dict[str, Counts] = {}
    progressed, failed = True, False
    while progressed:
        batch, failed = _run_batch(database, migrations, limit or _BATCH)
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
    """Run each migration once, on ``limit`` rows in all; return their counts, and whether one failed."""
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
