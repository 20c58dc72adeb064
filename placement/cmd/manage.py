"""placement-manage: what an operator does to the database (contract 5.4)."""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.metadata
import logging
import sys
from collections.abc import Callable, Iterator, Sequence

from oslo_config import cfg
from oslo_log import log
from sqlalchemy import exc

from placement import conf as options
from placement import errors
from placement.cmd.frame import framed
from placement.db import engine, online, schema, trouble
from placement.db.engine import Database
from placement.db.online import Counts

LOG = logging.getLogger(__name__)

Migration = Callable[[Database, int], Counts]
#: Rows of one batch, when the caller sets no limit.
BATCH = 50

# Exit codes of online_data_migrations.
MORE_TO_DO = 1
FAILED = 2
BAD_COUNT = 127


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        conf = _configured(argv or ["--help"])
        if conf.command.name is None:
            conf.print_help()
            return 1
        action: Callable[[cfg.ConfigOpts], int] = conf.command.action
        return action(conf)
    except SystemExit as done:
        # The parser has spoken: help, version, or usage.
        return int(done.code or 0) if argv else 1
    except (cfg.Error, schema.CommandError) as error:
        return _say(str(error))
    except errors.Failure as failure:
        reason = f" ({trouble.sentence(failure.__cause__)})" if failure.__cause__ else ""
        return _say(f"{failure}{reason}")
    except exc.DBAPIError as error:
        return _say(trouble.sentence(error))
    except (exc.ArgumentError, ModuleNotFoundError) as error:
        return _say(f"[placement_database]connection: {error}")


def _say(sentence: str) -> int:
    print(f"placement-manage: {' '.join(sentence.split())}", file=sys.stderr)
    return 1


def _configured(argv: Sequence[str]) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    options.register(conf)
    log.register_options(conf)
    conf.register_cli_opt(cfg.SubCommandOpt("command", title="commands", dest="command", handler=_add_commands))
    # What this command prints is for programs to read: the log goes elsewhere.
    conf.set_default("use_stderr", True)
    conf(argv, project=options.PROJECT, prog="placement-manage", version=_version())
    log.setup(conf, options.PROJECT)
    return conf


def _version() -> str:
    try:
        return importlib.metadata.version("placement-service")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    commands.required = False  # without one, main shows the help
    db = commands.add_parser("db", help="what is done to the database")
    db.set_defaults(action=lambda _: _show_help(db))
    actions = db.add_subparsers(title="actions", dest="db_action")

    def add(name: str, action: Callable[[cfg.ConfigOpts], int], does: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=does, description=does)
        parser.set_defaults(action=action)
        return parser

    add("sync", sync, "Bring the schema to the newest revision.")
    add("version", version, "Show the revision of the schema.")
    add("stamp", stamp, "Write down a revision, and change nothing else.").add_argument(
        "revision", help='a revision id, or "head"'
    )
    add(
        "online_data_migrations", online_data_migrations, "Complete rows that an older Placement left incomplete."
    ).add_argument("--max-count", metavar="<n>", help="the most rows to change; without it, all are")


def _show_help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def sync(conf: cfg.ConfigOpts) -> int:
    """Bring the schema to the newest revision."""
    with _reached(conf) as database:
        schema.sync(database.engine)
    return 0


def version(conf: cfg.ConfigOpts) -> int:
    """Print the revision of the schema."""
    with _reached(conf) as database:
        print(schema.version(database.reading_engine))
    return 0


def stamp(conf: cfg.ConfigOpts) -> int:
    """Write down a revision."""
    with _reached(conf) as database:
        schema.stamp(database.engine, conf.command.revision)
    return 0


def online_data_migrations(conf: cfg.ConfigOpts) -> int:
    """Run the migrations in batches, and say what they did."""
    limit = conf.command.max_count
    if limit is not None and not (limit.isdecimal() and int(limit) > 0):
        print("Must supply a positive value for max_count")
        return BAD_COUNT
    with _reached(conf) as database:
        return _migrate(database, _migrations(conf), None if limit is None else int(limit))


def _migrations(conf: cfg.ConfigOpts) -> dict[str, Migration]:
    owners = (conf.placement.incomplete_consumer_project_id, conf.placement.incomplete_consumer_user_id)
    return {
        "set_root_provider_ids": online.set_root_provider_ids,
        "create_incomplete_consumers": functools.partial(
            online.create_incomplete_consumers, project=owners[0], user=owners[1]
        ),
    }


def _migrate(database: Database, migrations: dict[str, Migration], limit: int | None) -> int:
    """The exit code after one batch of ``limit`` rows, or after as many batches as change something."""
    if limit is None:
        print(f"Running batches of {BATCH} until complete")
    totals: dict[str, Counts] = {}
    progressed, failed = True, False
    while progressed:
        batch, failed = _run_batch(database, migrations, limit or BATCH)
        totals.update({name: totals.get(name, Counts()) + counts for name, counts in batch.items()})
        progressed = any(counts.done for counts in batch.values())
        if limit is not None:
            break
    rows = [(name, counts.found, counts.done) for name, counts in totals.items()]
    print(framed(("Migration", "Total Found", "Completed"), *rows))
    if failed and not progressed:
        print("Some migrations failed unexpectedly. Check log for details.")
        return FAILED
    return MORE_TO_DO if progressed else 0


def _run_batch(database: Database, migrations: dict[str, Migration], limit: int) -> tuple[dict[str, Counts], bool]:
    """What each migration did with ``limit`` rows between them, and whether one failed."""
    ran: dict[str, Counts] = {}
    failed = False
    for name, migration in migrations.items():
        if limit <= 0:
            break
        ran[name] = Counts()
        try:
            ran[name] = migration(database, limit)
        except Exception:  # whatever it is, the other migrations can still do their work
            LOG.exception("Error attempting to run %s", name)
            print(f"Error attempting to run {name}")
            failed = True
        if ran[name].found:
            print(f"{ran[name].found} rows matched query {name}, {ran[name].done} migrated")
        limit -= ran[name].done
    return ran, failed


@contextlib.contextmanager
def _reached(conf: cfg.ConfigOpts) -> Iterator[Database]:
    """The configured database, as soon as it answers."""
    database = engine.connect(conf)
    group = conf.placement_database
    try:
        database.wait_until_reachable(group.max_retries, group.retry_interval)
        yield database
    finally:
        database.dispose()


if __name__ == "__main__":
    sys.exit(main())
