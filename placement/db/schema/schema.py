"""The schema of a database: its revision, and the ways to change it (docs: commands, database-schema)."""

from __future__ import annotations

import contextlib
import enum
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection, Engine

from placement import errors
from placement.db.engine import driver_errors
from placement.db.engine.driver_errors import ErrorClass
from placement.db.schema import tables

LOG = logging.getLogger(__name__)

#: The newest revision: the schema that placement.db.schema.tables describes.
HEAD = "b91d4e7f20ac"
#: The newest revisions of other Placement implementations: of current releases, and of older ones.
COMMON_HEADS = ("a082b8bb98d0", "422ece571366")
#: Seconds to wait for another process that is changing the schema.
SCHEMA_LOCK_TIMEOUT = 300
_LOCK_NAME = "placement-schema"
_LOCK_NUMBER = 0x706C6163656D656E  # "placemen": PostgreSQL names locks by 64 bits
#: Seconds for which a process counts as writing after its writer's last maintenance; that runs once a minute.
QUIET_PERIOD = 120
_TOO_LONG = "Another process has been changing the schema for %d seconds."


class UnknownRevision(errors.SchemaError):
    """The database is at a revision that this program does not know; the text names it."""


class State(enum.Enum):
    """How the schema of a database relates to this program."""

    MISSING = "missing"
    OLDER = "older"
    CURRENT = "current"
    UNKNOWN = "newer-unknown"


_FINDINGS = {
    State.MISSING: 'The database has no tables yet. Run "placement-manage db sync".',
    State.OLDER: 'The database is at revision %(version)s, not yet at %(head)s. Run "placement-manage db sync".',
    State.UNKNOWN: "The database is at revision %(version)s, which this program does not know: "
    "a newer version or another program made it.",
}


@dataclass(frozen=True, slots=True)
class Addition:
    """The tables of an extension; :func:`sync` adds the tables, columns and indexes that the database lacks.

    Args:
        tables: Those of ``placement.db.schema.tables.metadata``.  A column that a later version adds is nullable, or
            has a default of the server, for the rows that are there; constraints come with their table only.  With a
            column of the core as ``like`` in its ``info`` a column gets the collation of that one, to be joined with.
        losses: Returns a sentence on rows that cannot be made again, and that :func:`release` would drop; empty if
            there are none.
    """

    tables: Sequence[sa.Table]
    losses: Callable[[Connection], str] | None = None


def sync(engine: Engine, revision: str = "head", additions: Sequence[Addition] = ()) -> None:
    """Upgrade the schema to ``revision``; several processes may do so at once.

    Args:
        additions: Their tables are brought up to date, too, if ``revision`` is "head".

    Raises:
        UnknownRevision: The database is at no revision of this program.
        SchemaError: The tables are of another program, or a revision refuses some rows.
    """
    with _exclusively(engine) as connection:
        _refuse_unversioned(connection)
        found = _version(connection)
        if _state(found) is State.UNKNOWN:
            raise UnknownRevision(_FINDINGS[State.UNKNOWN] % {"version": found})
        if (found, revision) != (HEAD, "head"):
            from placement.db.schema import revisions  # imports alembic

            revisions.upgrade(connection, revision)
        if revision == "head" and (missing := _lacking(connection, additions)):
            from placement.db.schema import revisions

            LOG.info("Adding what extensions need: %s", ", ".join(missing))
            revisions.complete(connection, _tables_of(additions))


def release(
    engine: Engine,
    revision: str = COMMON_HEADS[0],
    *,
    force: bool = False,
    discard_leases: bool = False,
    additions: Sequence[Addition] = (),
    discarded: Sequence[Addition] = (),
) -> None:
    """Downgrade the schema to what another Placement implementation knows; no process may be serving it.

    Args:
        revision: The newest revision of that implementation, one of COMMON_HEADS.  A database at an older one only
            loses our tables.
        force: Do it even if a process of this service wrote to the database a short time ago.
        discard_leases: Do it even if there are claims with an end, which they lose.
        additions: Their tables are dropped.
        discarded: Those that are dropped even if rows are lost.

    Raises:
        SchemaError: A process wrote a short time ago, rows of an addition or ends of claims would be lost, or the
            database has no schema, or one of an unknown revision.
    """
    from placement.db.schema import revisions

    with _exclusively(engine) as connection:
        found = _version(connection)
        if _state(found) in (State.MISSING, State.UNKNOWN):
            raise errors.SchemaError(_FINDINGS[_state(found)] % {"version": found})
        if not force:
            _refuse_while_served(connection)
        for each in additions:
            if each.losses and each not in discarded and (sentence := each.losses(connection)):
                raise errors.SchemaError(sentence)
        if not discard_leases:
            _refuse_with_leases(connection)
        tables.metadata.drop_all(connection, tables=_tables_of(additions))
        if found in revisions.beyond(revision):
            revisions.downgrade(connection, revision)
        tables.metadata.drop_all(connection, tables=tables.OURS)  # a downgrade leaves them if the revision was stamped
        shared = {table.name for table in tables.CORE} | {"alembic_version"}
        if left := sorted(set(sa.inspect(connection).get_table_names()) - shared):
            LOG.warning("Tables stay that no installed extension has: %s.", ", ".join(left))


def version(engine: Engine) -> str | None:
    """Return the revision of the schema; None if there is none."""
    with engine.connect() as connection:
        return _version(connection)


def stamp(engine: Engine, revision: str) -> None:
    """Record ``revision`` ("head", or an id) as that of the schema, and change nothing else.

    Raises:
        SchemaError: There is no such revision.
    """
    from placement.db.schema import revisions

    revisions.check(revision)  # before the purge of the old one, which MySQL does not roll back
    with _exclusively(engine) as connection:
        revisions.stamp(connection, revision)


def state(engine: Engine) -> State:
    """Return how the schema relates to this program."""
    return _state(version(engine))


def finding(engine: Engine, additions: Sequence[Addition] = ()) -> str | None:
    """Return the finding about the schema; None if it is current, and has the tables of the additions."""
    found = version(engine)
    template = _FINDINGS.get(_state(found))
    if template:
        return template % {"version": found, "head": HEAD}
    with engine.connect() as connection:
        missing = _lacking(connection, additions)
    return f'The database lacks {", ".join(missing)}. Run "placement-manage db sync".' if missing else None


def require_current(engine: Engine, additions: Sequence[Addition] = ()) -> None:
    """Raise SchemaError if the schema is not that of this program."""
    if found := finding(engine, additions):
        raise errors.SchemaError(found)


def lacking(engine: Engine, additions: Sequence[Addition] = ()) -> list[str]:
    """Return the tables that this program uses and the database lacks, and ``table.column`` of such columns."""
    with engine.connect() as connection:
        return _missing(sa.inspect(connection), [*tables.CORE, *_tables_of(additions)])


def _lacking(connection: Connection, additions: Sequence[Addition]) -> list[str]:
    """Return the tables, columns and indexes of the additions that the database lacks."""
    if not additions:
        return []
    inspector, wanted = sa.inspect(connection), {table.name: table for table in _tables_of(additions)}
    missing = set(_missing(inspector, wanted.values()))
    for (_, name), found in inspector.get_multi_indexes(filter_names=[*wanted]).items():
        present = {index["name"] for index in found}
        missing |= {str(index.name) for index in wanted[name].indexes if index.name not in present}
    return sorted(missing)


def _missing(inspector: sa.Inspector, wanted: Collection[sa.Table]) -> list[str]:
    """Return those of the tables that the database lacks, and ``table.column`` of columns that it lacks."""
    found = inspector.get_multi_columns(filter_names=[table.name for table in wanted])
    present = {table: {column["name"] for column in columns} for (_, table), columns in found.items()}
    columns = (column for table in wanted if table.name in present for column in table.columns)
    return sorted(
        [table.name for table in wanted if table.name not in present]
        + [str(column) for column in columns if column.name not in present[column.table.name]]
    )


def _tables_of(additions: Sequence[Addition]) -> list[sa.Table]:
    return [table for each in additions for table in each.tables]


def _state(found: str | None) -> State:
    if found is None:
        return State.MISSING
    if found == HEAD:
        return State.CURRENT
    from placement.db.schema import revisions

    return State.OLDER if found in revisions.known() else State.UNKNOWN


def _version(connection: Connection) -> str | None:
    # Not with alembic's MigrationContext, which logs two lines each time.
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(
        sa.select(sa.column("version_num", sa.String)).select_from(sa.table("alembic_version"))
    ).scalar()


def _refuse_unversioned(connection: Connection) -> None:
    """Raise SchemaError if the database has tables of our names but no revision: they may be of another program."""
    present = set(sa.inspect(connection).get_table_names())
    unversioned = sorted(present & set(tables.metadata.tables))
    if unversioned and "alembic_version" not in present:
        raise errors.SchemaError(
            f"The database has tables {', '.join(unversioned)} but no alembic_version: it was not made by Placement, "
            'or its revision is not recorded. If you know it, run "placement-manage db stamp <revision>" first.'
        )


def _refuse_while_served(connection: Connection) -> None:
    """Raise SchemaError if a process of this service wrote a short time ago, by the clock of the database."""
    if not sa.inspect(connection).has_table(tables.change_writers.name):
        return
    # PostgreSQL's CURRENT_TIMESTAMP has a zone, which the columns do not; SQLite has no other.
    clock = sa.func.current_timestamp() if connection.dialect.name == "sqlite" else sa.func.localtimestamp()
    now, seen = connection.execute(sa.select(clock, sa.func.max(tables.change_writers.c.seen_at))).one()
    if seen is None:
        return
    ago = (now - seen).total_seconds()
    if ago < QUIET_PERIOD:
        raise errors.SchemaError(
            f"A process of this service wrote to the database {max(0, round(ago))} seconds ago. Stop all of them: "
            f'"db release" works {QUIET_PERIOD} seconds after that, or at once with --force.'
        )


def _refuse_with_leases(connection: Connection) -> None:
    """Raise SchemaError if there are claims with an end, which no other implementation gives back."""
    leases = rows(connection, tables.claims, tables.claims.c.expires_at.is_not(None))
    if leases:
        raise errors.SchemaError(
            f"The database has {leases} claims with an end, which would be lost: what they hold would stay until a "
            'client releases it. "db release" drops the ends with --discard-leases.'
        )


def rows(connection: Connection, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
    """Return the number of rows of the table that meet the conditions; 0 if it does not exist."""
    if not sa.inspect(connection).has_table(table.name):
        return 0
    return connection.execute(sa.select(sa.func.count()).select_from(table).where(*conditions)).scalar_one()


@contextlib.contextmanager
def _exclusively(engine: Engine) -> Iterator[Connection]:
    """Provide a connection for changes of the schema, with a lock against other processes; commit after the block."""
    backend = engine.dialect.name
    with engine.connect() as connection:
        if backend in ("mysql", "mariadb"):
            # MySQL commits every change of the schema implicitly; the recorded revision must be committed with it.
            connection.execution_options(isolation_level="AUTOCOMMIT")
            # It ends here: to give it back the pool would reset the level, which raises an error of the driver if the
            # connection is lost by then.
            connection.detach()
            with _mysql_lock(connection):
                yield connection
        else:
            # SQLite: BEGIN IMMEDIATE has taken the only write lock (placement/db/engine/dialects.py).
            if backend == "postgresql":
                _lock_postgresql(connection)
            yield connection
        connection.commit()


def _lock_postgresql(connection: Connection) -> None:
    """Take PostgreSQL's advisory lock until the transaction ends."""
    try:
        connection.execute(sa.text(f"SET LOCAL lock_timeout = '{SCHEMA_LOCK_TIMEOUT}s'"))
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_NUMBER)))
    except exc.OperationalError as error:
        if driver_errors.classify(error) is not ErrorClass.COLLISION:
            raise
        raise errors.SchemaError(_TOO_LONG % SCHEMA_LOCK_TIMEOUT) from error


@contextlib.contextmanager
def _mysql_lock(connection: Connection) -> Iterator[None]:
    """Hold MySQL's named lock; some Galera clusters forbid it, but they serialize changes of the schema anyway."""
    name = f"{_LOCK_NAME} {connection.engine.url.database}"[:64]
    try:
        taken = connection.execute(sa.select(sa.func.get_lock(name, SCHEMA_LOCK_TIMEOUT))).scalar()
    except exc.DBAPIError as error:
        if driver_errors.classify(error) is ErrorClass.LOST:
            raise
        LOG.warning("The schema is changed without a lock: %s", driver_errors.message(error))
        yield
        return
    if not taken:
        raise errors.SchemaError(_TOO_LONG % SCHEMA_LOCK_TIMEOUT)
    try:
        yield
    finally:
        if not connection.invalidated:  # the lock ends with its session
            connection.execute(sa.select(sa.func.release_lock(name)))
