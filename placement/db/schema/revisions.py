"""The revisions of the schema, kept by alembic.

``schema`` imports this module only where it needs it: importing alembic takes a tenth of a start, and a schema that is
current needs no alembic.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.engine import Connection

from placement import errors

#: Idempotent steps (placement/db/migrations/steps.py).
Migration = Callable[[], None]


def upgrade(connection: Connection, revision: str) -> None:
    """Upgrade to the revision; raises SchemaError if it does not exist, or if one on the way refuses some rows."""
    with _refusals():
        command.upgrade(configuration(connection), revision)


def migrate(connection: Connection, migrations: Iterable[Migration]) -> None:
    """Take the steps of migrations that have no revision, those of extensions."""
    context = MigrationContext.configure(connection)
    with Operations.context(context):
        for each in migrations:
            each()


def downgrade(connection: Connection, revision: str) -> None:
    """Downgrade to the revision; raises SchemaError if it does not exist."""
    with _refusals():
        command.downgrade(configuration(connection), revision)


def stamp(connection: Connection, revision: str) -> None:
    """Replace the recorded revision by this one; raises SchemaError if it does not exist."""
    with _refusals():
        command.stamp(configuration(connection), revision, purge=True)


def check(revision: str) -> None:
    """Raise SchemaError if there is no such revision."""
    with _refusals():
        _scripts().get_revisions(revision)


def known() -> set[str]:
    """Return the ids of all revisions."""
    with _refusals():
        return {script.revision for script in _scripts().walk_revisions()}


def beyond(revision: str) -> set[str]:
    """Return the ids of the revisions after this one."""
    with _refusals():
        return {script.revision for script in _scripts().iterate_revisions("head", revision)}


def configuration(connection: Connection | None = None) -> Config:
    """Return alembic's configuration for them and the given connection."""
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
