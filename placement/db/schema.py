"""The schema of a database: which revision it is at, and bringing it to the newest (contract 5.4 and 6)."""

from __future__ import annotations

import contextlib
import enum
import functools
import logging
from collections.abc import Iterator

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import exc
from sqlalchemy.engine import Connection, Engine

from placement.db import driver_errors, tables
from placement.db.driver_errors import ErrorClass

__all__ = [
    "COMMON_HEADS",
    "CommandError",
    "State",
    "finding",
    "configuration",
    "head",
    "release",
    "stamp",
    "state",
    "sync",
    "version",
]

LOG = logging.getLogger(__name__)

#: The newest revisions that other Placements know: the newest of them, and that of older ones.
COMMON_HEADS = ("a082b8bb98d0", "422ece571366")
#: Seconds to wait for another process that changes the schema.
SCHEMA_LOCK_TIMEOUT = 300
_LOCK_NAME = "placement-schema"
_LOCK_NUMBER = 0x706C6163656D656E  # "placemen": PostgreSQL names locks by 64 bits
#: Seconds that a process which writes is seen after its last sign of life, which comes once a minute.
_SERVED = 120
_TOO_LONG = "Another process has been changing the schema for %d seconds."


class State(enum.Enum):
    """How the schema of a database relates to this program."""

    MISSING = "missing"
    OLDER = "older"
    CURRENT = "current"
    UNKNOWN = "newer-unknown"


_FINDINGS = {
    State.MISSING: 'The database has no tables yet. Run "placement-manage db sync".',
    State.OLDER: 'The database is at revision %(version)s, not yet at %(head)s. Run "placement-manage db sync".',
    State.UNKNOWN: "The database is at revision %(version)s, which this program does not know: a newer one made it.",
}


def sync(engine: Engine, revision: str = "head") -> None:
    """Bring the schema to the newest revision, or up to ``revision``; any number of processes may do so at once.

    Raises CommandError if the database is not ours, is newer than this program, or has rows that a revision refuses.
    """
    with _alone(engine) as connection:
        _refuse_strangers(connection)
        command.upgrade(configuration(connection), revision)


def release(engine: Engine, revision: str = COMMON_HEADS[0], *, force: bool = False) -> None:
    """Take away what only we know, so that a Placement whose newest revision is ``revision`` finds its own schema.

    ``revision`` is one of COMMON_HEADS.  A database that is not beyond it only loses our tables, if it has them.
    No process of this service may serve it.  Raises CommandError if one wrote to it a short time ago, unless ``force``;
    and if it has no schema, or one newer than this program.
    """
    with _alone(engine) as connection:
        found = _version(connection)
        if _state(found) in (State.MISSING, State.UNKNOWN):
            raise CommandError(_FINDINGS[_state(found)] % {"version": found})
        if not force:
            _refuse_while_served(connection)
        if found in _beyond(revision):
            command.downgrade(configuration(connection), revision)
        tables.metadata.drop_all(connection, tables=tables.OURS)  # a stamp leaves them behind


def version(engine: Engine) -> str | None:
    """The revision of the schema; None if it was never made."""
    with engine.connect() as connection:
        return _version(connection)


def stamp(engine: Engine, revision: str) -> None:
    """Write down that the schema is at ``revision`` ("head", or an id), from any other one, and change nothing else.

    Raises CommandError if there is no such revision.
    """
    _scripts().get_revisions(revision)  # or purging would come first, and on MySQL stay
    with _alone(engine) as connection:
        command.stamp(configuration(connection), revision, purge=True)


def state(engine: Engine) -> State:
    """How the schema relates to this program."""
    return _state(version(engine))


def finding(engine: Engine) -> str | None:
    """What an operator should be told about the schema; None if it is as it should be."""
    found = version(engine)
    says = _FINDINGS.get(_state(found))
    return says % {"version": found, "head": head()} if says else None


def head() -> str:
    """The newest revision this program knows."""
    (newest,) = _scripts().get_heads()
    return newest


def configuration(connection: Connection | None = None) -> Config:
    """What alembic needs to run its commands on our revisions and the given connection."""
    config = Config()
    config.set_main_option("script_location", "placement.db:migrations")
    config.attributes["connection"] = connection
    return config


def _state(found: str | None) -> State:
    if found is None:
        return State.MISSING
    if found == head():
        return State.CURRENT
    known = {script.revision for script in _scripts().walk_revisions()}
    return State.OLDER if found in known else State.UNKNOWN


def _version(connection: Connection) -> str | None:
    # Not by alembic's MigrationContext: it writes two lines into the log whenever it is asked.
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(
        sa.select(sa.column("version_num", sa.String)).select_from(sa.table("alembic_version"))
    ).scalar()


def _beyond(revision: str) -> set[str]:
    """The revisions that come after it."""
    return {script.revision for script in _scripts().iterate_revisions("head", revision)}


@functools.cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(configuration())


def _refuse_strangers(connection: Connection) -> None:
    """Tables of our names that no revision accounts for belong to another program, or were made by hand."""
    present = set(sa.inspect(connection).get_table_names())
    strangers = sorted(present & set(tables.metadata.tables))
    if strangers and "alembic_version" not in present:
        raise CommandError(
            f"The database has tables {', '.join(strangers)} but no alembic_version: it was not made by Placement, "
            'or its revision is not recorded. If you know it, run "placement-manage db stamp <revision>" first.'
        )


def _refuse_while_served(connection: Connection) -> None:
    """Raise CommandError if a process of this service has written lately, by the clock of the database."""
    if not sa.inspect(connection).has_table(tables.change_writers.name):
        return
    # PostgreSQL's CURRENT_TIMESTAMP has a zone, which the columns do not; SQLite has no other.
    clock = sa.func.current_timestamp() if connection.dialect.name == "sqlite" else sa.func.localtimestamp()
    now, seen = connection.execute(sa.select(clock, sa.func.max(tables.change_writers.c.seen_at))).one()
    if seen is None:
        return
    ago = (now - seen).total_seconds()
    if ago < _SERVED:
        raise CommandError(
            f"A process of this service wrote to the database {max(0, round(ago))} seconds ago. Stop all of them: "
            f'"db release" works {_SERVED} seconds after that, or at once with --force.'
        )


@contextlib.contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A connection to change the schema with, while no other process does; committed if the block succeeds."""
    backend = engine.dialect.name
    with engine.connect() as connection:
        if backend in ("mysql", "mariadb"):
            # Every change of the schema commits by itself; so shall the revision that goes with it.
            connection.execution_options(isolation_level="AUTOCOMMIT")
            with _named_lock(connection):
                yield connection
        else:
            # SQLite: beginning took the only write lock (placement.db.dialects).
            if backend == "postgresql":
                _numbered_lock(connection)
            yield connection
        connection.commit()


def _numbered_lock(connection: Connection) -> None:
    """PostgreSQL's advisory lock, until the transaction ends."""
    try:
        connection.execute(sa.text(f"SET LOCAL lock_timeout = '{SCHEMA_LOCK_TIMEOUT}s'"))
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_NUMBER)))
    except exc.OperationalError as error:
        if driver_errors.classify(error) is not ErrorClass.COLLISION:
            raise
        raise CommandError(_TOO_LONG % SCHEMA_LOCK_TIMEOUT) from error


@contextlib.contextmanager
def _named_lock(connection: Connection) -> Iterator[None]:
    """MySQL's named lock; some Galera clusters forbid it, and run changes of the schema one after the other anyway."""
    name = f"{_LOCK_NAME} {connection.engine.url.database}"[:64]
    try:
        taken = connection.execute(sa.select(sa.func.get_lock(name, SCHEMA_LOCK_TIMEOUT))).scalar()
    except exc.DBAPIError as error:
        LOG.warning("The schema is changed without a lock: %s", driver_errors.message(error))
        yield
        return
    if not taken:
        raise CommandError(_TOO_LONG % SCHEMA_LOCK_TIMEOUT)
    try:
        yield
    finally:
        connection.execute(sa.select(sa.func.release_lock(name)))
