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

#: The newest revision: the schema of placement.db.schema.tables.
HEAD = "b91d4e7f20ac"
#: The newest revisions of other Placement implementations: in current releases, and in older releases.
COMMON_HEADS = ("a082b8bb98d0", "422ece571366")
#: Seconds to wait for another process that changes the schema.
SCHEMA_LOCK_TIMEOUT = 300
_LOCK_NAME = "placement-schema"
_LOCK_NUMBER = 0x706C6163656D656E  # "placemen": PostgreSQL names locks by 64 bits
#: Seconds after the last maintenance of a feed writer during which the database counts as in use.  Maintenance runs
#: once a minute.
QUIET_PERIOD = 120
_LOCK_TIMED_OUT = "Another process has been changing the schema for %d seconds. Try again when it has finished."


class UnknownRevision(errors.SchemaError):
    """The database is at a revision that this release does not know; the message names it."""


class State(enum.Enum):
    """The state of a database's schema, as this release sees it."""

    MISSING = "missing"
    OLDER = "older"
    CURRENT = "current"
    UNKNOWN = "newer-unknown"


_FINDINGS = {
    State.MISSING: 'The database has no tables yet. Run "placement-manage db sync".',
    State.OLDER: 'The database is at revision %(version)s, not yet at %(head)s. Run "placement-manage db sync".',
    State.UNKNOWN: "The database is at revision %(version)s, which this release does not know: "
    "a newer release or another application created it.",
}


@dataclass(frozen=True, slots=True)
class Addition:
    """The tables of an extension; :func:`sync` adds the tables, columns and indexes that the database lacks.

    Attributes:
        tables: Tables in ``placement.db.schema.tables.metadata``.  A column that a later version adds must be nullable
            or have a server default, because of existing rows; constraints are added only with their table.  A column
            that is joined with a column of the core names it in ``info["like"]``, to get the same collation.
        losses: A function that returns a sentence about the irreplaceable rows that :func:`release` would drop, or an
            empty string.
    """

    tables: Sequence[sa.Table]
    losses: Callable[[Connection], str] | None = None


def sync(engine: Engine, revision: str = "head", additions: Sequence[Addition] = ()) -> None:
    """Upgrade the schema to ``revision``; several processes may do so at once.

    Args:
        additions: The additions whose tables are completed as well if ``revision`` is "head".

    Raises:
        UnknownRevision: This release does not know the revision of the database.
        SchemaError: The tables belong to another application, or a revision refuses rows of the database.
    """
    with _exclusive_connection(engine) as connection:
        _refuse_unversioned(connection)
        current = _version(connection)
        if _state(current) is State.UNKNOWN:
            raise UnknownRevision(_FINDINGS[State.UNKNOWN] % {"version": current})
        if (current, revision) != (HEAD, "head"):
            from placement.db.schema import revisions  # imports alembic

            revisions.upgrade(connection, revision)
        if revision == "head" and (missing := _missing_parts(connection, additions)):
            from placement.db.schema import revisions

            LOG.info("Adding tables, columns or indexes of extensions: %s", ", ".join(missing))
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
    """Downgrade the schema to one that another Placement implementation knows; the service must not be running.

    Args:
        revision: The newest revision of that implementation, one of COMMON_HEADS.  A database at an older revision
            only loses the tables that this service adds.
        force: Whether to go on if a process of this service wrote to the database recently.
        discard_leases: Whether to go on if leases exist, whose expiry is lost.
        additions: The additions whose tables are dropped.
        discarded: The additions that are dropped even if rows are lost.

    Raises:
        SchemaError: A process wrote recently, rows of an addition or the expiry of leases would be lost, or the
            database has no schema or an unknown revision.
    """
    from placement.db.schema import revisions

    with _exclusive_connection(engine) as connection:
        current = _version(connection)
        if _state(current) in (State.MISSING, State.UNKNOWN):
            raise errors.SchemaError(_FINDINGS[_state(current)] % {"version": current})
        if not force:
            _refuse_while_in_use(connection)
        for addition in additions:
            if addition.losses and addition not in discarded and (sentence := addition.losses(connection)):
                raise errors.SchemaError(sentence)
        if not discard_leases:
            _refuse_with_leases(connection)
        tables.metadata.drop_all(connection, tables=_tables_of(additions))
        if current in revisions.later_than(revision):
            revisions.downgrade(connection, revision)
        tables.metadata.drop_all(connection, tables=tables.OURS)  # still there if the revision was stamped
        shared = {table.name for table in tables.CORE} | {"alembic_version"}
        if unowned := sorted(set(sa.inspect(connection).get_table_names()) - shared):
            LOG.warning("Tables that belong to no installed extension are kept: %s.", ", ".join(unowned))


def version(engine: Engine) -> str | None:
    """Return the recorded revision of the schema, or None."""
    with engine.connect() as connection:
        return _version(connection)


def stamp(engine: Engine, revision: str) -> None:
    """Record ``revision`` ("head", or an id) as the revision of the schema, and change nothing else.

    Raises:
        SchemaError: The revision does not exist.
    """
    from placement.db.schema import revisions

    revisions.check(revision)  # before the old one is deleted, which MySQL does not roll back
    with _exclusive_connection(engine) as connection:
        revisions.stamp(connection, revision)


def state(engine: Engine) -> State:
    """Return the state of the schema."""
    return _state(version(engine))


def finding(engine: Engine, additions: Sequence[Addition] = ()) -> str | None:
    """Return the finding about the schema; None if it is current and includes the tables of the additions."""
    current = version(engine)
    template = _FINDINGS.get(_state(current))
    if template:
        return template % {"version": current, "head": HEAD}
    with engine.connect() as connection:
        missing = _missing_parts(connection, additions)
    return f'The database lacks {", ".join(missing)}. Run "placement-manage db sync".' if missing else None


def require_current(engine: Engine, additions: Sequence[Addition] = ()) -> None:
    """Raise SchemaError unless the schema is current and includes the tables of the additions."""
    if sentence := finding(engine, additions):
        raise errors.SchemaError(sentence)


def missing_columns(engine: Engine, additions: Sequence[Addition] = ()) -> list[str]:
    """Return the tables that the database lacks, and ``table.column`` for each missing column of other tables."""
    with engine.connect() as connection:
        return _missing_columns(sa.inspect(connection), [*tables.CORE, *_tables_of(additions)])


def _missing_parts(connection: Connection, additions: Sequence[Addition]) -> list[str]:
    """Return the tables, columns and indexes of the additions that the database lacks."""
    if not additions:
        return []
    inspector, tables_by_name = sa.inspect(connection), {table.name: table for table in _tables_of(additions)}
    missing = set(_missing_columns(inspector, tables_by_name.values()))
    for (_, name), indexes in inspector.get_multi_indexes(filter_names=[*tables_by_name]).items():
        present = {index["name"] for index in indexes}
        missing |= {str(index.name) for index in tables_by_name[name].indexes if index.name not in present}
    return sorted(missing)


def _missing_columns(inspector: sa.Inspector, required: Collection[sa.Table]) -> list[str]:
    """Return the names of missing tables, and ``table.column`` for each missing column of the other tables."""
    columns_of = inspector.get_multi_columns(filter_names=[table.name for table in required])
    present = {table: {column["name"] for column in columns} for (_, table), columns in columns_of.items()}
    columns = (column for table in required if table.name in present for column in table.columns)
    return sorted(
        [table.name for table in required if table.name not in present]
        + [str(column) for column in columns if column.name not in present[column.table.name]]
    )


def _tables_of(additions: Sequence[Addition]) -> list[sa.Table]:
    return [table for addition in additions for table in addition.tables]


def _state(revision: str | None) -> State:
    if revision is None:
        return State.MISSING
    if revision == HEAD:
        return State.CURRENT
    from placement.db.schema import revisions

    return State.OLDER if revision in revisions.revision_ids() else State.UNKNOWN


def _version(connection: Connection) -> str | None:
    # Not with alembic's MigrationContext, which logs two lines each time.
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(
        sa.select(sa.column("version_num", sa.String)).select_from(sa.table("alembic_version"))
    ).scalar()


def _refuse_unversioned(connection: Connection) -> None:
    """Raise SchemaError if tables of the service exist without a revision: another application may own them."""
    present = set(sa.inspect(connection).get_table_names())
    unversioned = sorted(present & set(tables.metadata.tables))
    if unversioned and "alembic_version" not in present:
        raise errors.SchemaError(
            f"The database has tables {', '.join(unversioned)} but no alembic_version: Placement did not create it, "
            'or its revision is not recorded. If you know it, run "placement-manage db stamp <revision>" first.'
        )


def _refuse_while_in_use(connection: Connection) -> None:
    """Raise SchemaError if a process of this service wrote recently, by the database's clock."""
    if not sa.inspect(connection).has_table(tables.change_writers.name):
        return
    # PostgreSQL's CURRENT_TIMESTAMP has a time zone, unlike the columns; SQLite has no LOCALTIMESTAMP.
    clock = sa.func.current_timestamp() if connection.dialect.name == "sqlite" else sa.func.localtimestamp()
    now, last_seen = connection.execute(sa.select(clock, sa.func.max(tables.change_writers.c.seen_at))).one()
    if last_seen is None:
        return
    age = (now - last_seen).total_seconds()
    if age < QUIET_PERIOD:
        raise errors.SchemaError(
            f"A process of this service wrote to the database {max(0, round(age))} seconds ago. Stop all of them; then "
            f'run "db release" after {QUIET_PERIOD} seconds, or at once with --force.'
        )


def _refuse_with_leases(connection: Connection) -> None:
    """Raise SchemaError if leases exist, which no other implementation releases."""
    leases = rows(connection, tables.claims, tables.claims.c.expires_at.is_not(None))
    if leases:
        raise errors.SchemaError(
            f"The expiry of leases would be lost ({leases}): they would hold their resources until a client releases "
            'them. Run "db release" with --discard-leases to accept that.'
        )


def rows(connection: Connection, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
    """Return the number of rows that meet the conditions; 0 if the table does not exist."""
    if not sa.inspect(connection).has_table(table.name):
        return 0
    return connection.execute(sa.select(sa.func.count()).select_from(table).where(*conditions)).scalar_one()


@contextlib.contextmanager
def _exclusive_connection(engine: Engine) -> Iterator[Connection]:
    """Provide a connection for changes of the schema, locked against other processes; commit after the block."""
    backend = engine.dialect.name
    with engine.connect() as connection:
        if backend in ("mysql", "mariadb"):
            # MySQL commits every change of the schema implicitly; the recorded revision must be committed with it.
            connection.execution_options(isolation_level="AUTOCOMMIT")
            # The connection does not return to the pool, which would reset the isolation level: that raises a driver
            # error if the connection is lost by then.
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
        raise errors.SchemaError(_LOCK_TIMED_OUT % SCHEMA_LOCK_TIMEOUT) from error


@contextlib.contextmanager
def _mysql_lock(connection: Connection) -> Iterator[None]:
    """Hold a named lock of MySQL; some Galera clusters forbid it, but they serialize changes of the schema anyway."""
    name = f"{_LOCK_NAME} {connection.engine.url.database}"[:64]
    try:
        acquired = connection.execute(sa.select(sa.func.get_lock(name, SCHEMA_LOCK_TIMEOUT))).scalar()
    except exc.DBAPIError as error:
        if driver_errors.classify(error) is ErrorClass.LOST:
            raise
        LOG.warning("Changing the schema without a lock: %s", driver_errors.message(error))
        yield
        return
    if not acquired:
        raise errors.SchemaError(_LOCK_TIMED_OUT % SCHEMA_LOCK_TIMEOUT)
    try:
        yield
    finally:
        if not connection.invalidated:  # the lock ends with its session
            connection.execute(sa.select(sa.func.release_lock(name)))
