"""The revisions of the schema, by alembic.

``schema`` imports this where it is needed: importing alembic takes a tenth of a start, and a current schema needs none.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.engine import Connection

from placement import errors


def upgrade(connection: Connection, revision: str) -> None:
    """Raises SchemaError: a revision refuses some rows."""
    with _refusals():
        command.upgrade(configuration(connection), revision)


def downgrade(connection: Connection, revision: str) -> None:
    """Raises SchemaError: there is no such revision."""
    with _refusals():
        command.downgrade(configuration(connection), revision)


def stamp(connection: Connection, revision: str) -> None:
    """Record the revision in the place of the one that is recorded."""
    with _refusals():
        command.stamp(configuration(connection), revision, purge=True)


def check(revision: str) -> None:
    """Raise SchemaError if there is no such revision."""
    with _refusals():
        _scripts().get_revisions(revision)


def known() -> set[str]:
    """Return all of them."""
    return {script.revision for script in _scripts().walk_revisions()}


def beyond(revision: str) -> set[str]:
    """Return those that come after this one."""
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
