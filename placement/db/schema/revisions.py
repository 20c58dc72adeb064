"""The revisions of the schema, applied by alembic, and the tables of extensions, which have no revision.

``schema`` imports this module on demand: importing alembic takes a tenth of the startup time, and a current schema does
not need alembic.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Connection

from placement import errors
from placement.db.schema import tables


def upgrade(connection: Connection, revision: str) -> None:
    """Upgrade to the revision; raise SchemaError if it does not exist, or if a step refuses rows of the database."""
    with _refusals():
        command.upgrade(configuration(connection), revision)


def complete(connection: Connection, additions: Sequence[sa.Table]) -> None:
    """Add the tables, columns and indexes that the database lacks; these tables have no revision."""
    alembic = Operations(MigrationContext.configure(connection))
    with _match_collations(connection, additions):
        tables.metadata.create_all(connection, additions)
        for table in additions:
            present = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
            for column in table.columns:
                if column.name not in present:
                    alembic.add_column(table.name, column)
            for index in table.indexes:
                index.create(connection, checkfirst=True)


@contextlib.contextmanager
def _match_collations(connection: Connection, additions: Iterable[sa.Table]) -> Iterator[None]:
    """Within the block, create new columns with the collation of the columns that they are joined with.

    The database's default collation may have changed, or a backup may have been restored into a database with another
    default.  MySQL does not compare columns with different collations ("Illegal mix of collations").
    """
    types: dict[sa.Column[Any], Any] = {
        column: column.type for table in additions for column in table.columns if "like" in column.info
    }
    collation_of = sa.text(
        "SELECT character_set_name, collation_name FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = :table AND column_name = :column"
    )
    try:
        for column in types if connection.dialect.name in ("mysql", "mariadb") else ():
            like = column.info["like"]
            charset, collation = connection.execute(collation_of, {"table": like.table.name, "column": like.name}).one()
            column.type = mysql.VARCHAR(types[column].length, charset=charset, collation=collation)
        yield
    finally:
        for column, kind in types.items():
            column.type = kind


def downgrade(connection: Connection, revision: str) -> None:
    """Downgrade to the revision; raise SchemaError if it does not exist."""
    with _refusals():
        command.downgrade(configuration(connection), revision)


def stamp(connection: Connection, revision: str) -> None:
    """Record this revision instead of the current one; raise SchemaError if it does not exist."""
    with _refusals():
        command.stamp(configuration(connection), revision, purge=True)


def check(revision: str) -> None:
    """Raise SchemaError unless the revision exists."""
    with _refusals():
        _scripts().get_revisions(revision)


def revision_ids() -> set[str]:
    """Return the ids of all revisions."""
    with _refusals():
        return {script.revision for script in _scripts().walk_revisions()}


def later_than(revision: str) -> set[str]:
    """Return the ids of the revisions after this one."""
    with _refusals():
        return {script.revision for script in _scripts().iterate_revisions("head", revision)}


def configuration(connection: Connection | None = None) -> Config:
    """Return alembic's configuration for these revisions and the connection."""
    config = Config()
    config.set_main_option("script_location", "placement.db:migrations")
    config.attributes["connection"] = connection
    return config


@functools.cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(configuration())


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except CommandError as error:
        raise errors.SchemaError(str(error)) from error
