"""Databases with the tables of all extensions, which record their writes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from placement import conf, extension
from placement.db import database as databases
from placement.db.database import Database
from placement.db.schema import schema, tables
from placement.db.upkeep import sweep

#: The tables of all extensions.
ADDITIONS = extension.additions_of(extension.installed_extensions().values())
#: The names of all tables that OpenStack Placement lacks.
OURS = frozenset(
    table.name for table in (*tables.OURS, *(table for addition in ADDITIONS for table in addition.tables))
)


def sync(engine: sa.Engine, revision: str = "head") -> None:
    """Upgrade the schema, and the tables of all extensions."""
    schema.sync(engine, revision, ADDITIONS)


def release(engine: sa.Engine, revision: str = schema.COMMON_HEADS[0], **options: Any) -> None:
    """Downgrade the schema, and drop the tables of all extensions."""
    schema.release(engine, revision, additions=ADDITIONS, **options)


@functools.cache
def configuration() -> cfg.ConfigOpts:
    """Return the default options; not to be changed."""
    options = cfg.ConfigOpts()
    conf.register(options)
    options.set_override("connection", "sqlite://", group="placement_database")
    options([], project=conf.PROJECT, default_config_files=[], default_config_dirs=[], use_env=False)
    return options


@functools.cache
def empty_database() -> Database:
    """Return a database in memory with empty tables; not to be changed."""
    database = Database("sqlite://")
    sync(database.engine)
    return database


def attach_extensions(database: Database) -> Database:
    """Return the database, once the extensions are attached to it."""
    extension.attach(database, configuration())
    return database


class NoNotes:
    """Notes that record only whether there are any."""

    def __init__(self) -> None:
        self._added = False

    def add(self, *_args: Any, **_options: Any) -> None:
        self._added = True

    def __bool__(self) -> bool:
        return self._added

    def inserts(self, *_number: int) -> tuple[()]:
        return ()

    def committed(self) -> None:
        """Do nothing."""


class NoRecord:
    """A recorder for the core alone, whose transactions note their changes, as for any recorder."""

    def notes(self) -> NoNotes:
        return NoNotes()

    def committed(self) -> None:
        """Do nothing."""

    order = committed

    def maintain(self) -> bool:
        return True


@contextlib.contextmanager
def opened(
    url: str | sa.URL, *, recorded: bool | None = None, history: Any = None, **options: Any
) -> Iterator[Database]:
    """Provide a database like ``placement.db.database.open_database``, with the extensions attached.

    Args:
        recorded: Whether transactions are recorded; by default, if an extension does so.
        history: Settings of the recorder of the extension v1, other than the defaults.
    """
    with databases.open_database(url, **options) as database:
        if recorded is not False:
            attach_extensions(database)
        if recorded and database.recorder is None:
            database.recorder = NoRecord()
        if history is not None:
            database.recorder = type(database.recorder)(history, database)
        yield database


def sweep_database(database: Database, grace: float = sweep.GRACE) -> list[sweep.Swept]:
    """Sweep like ``placement-manage db sweep``."""
    findings = sweep.sweep(database, grace)
    for installed in extension.installed_extensions().values():
        findings += installed.swept(database) if installed.swept else ()
    return findings
