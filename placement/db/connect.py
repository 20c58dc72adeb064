"""Connection to the configured database."""

from __future__ import annotations

import contextlib
import os

import sqlalchemy as sa
from oslo_config import cfg

from placement.db.database import Database
from placement.db.engine import dialects, statements


def connect(conf: cfg.ConfigOpts, *, unbounded: bool = False) -> Database:
    """Return the database of ``[placement_database]``; it connects when it is first used.

    Args:
        conf: The configuration, with the service's options registered.
        unbounded: Whether statements have no time limit, as for commands.

    Raises:
        sqlalchemy.exc.ArgumentError: The URL is malformed.
        ImportError: The driver is not installed.
    """
    group = conf.placement_database
    url = dialects.normalise(group.connection)
    if group.connection_parameters:
        url = url.update_query_string(group.connection_parameters)
    options = {
        "connect_timeout": group.connect_timeout,
        "read_timeout": group.read_timeout,
        "pool_size": group.max_pool_size,
        "max_overflow": group.max_overflow,
        "pool_timeout": group.pool_timeout,
        "pool_recycle": group.connection_recycle_time,
        "mysql_sql_mode": group.mysql_sql_mode,
        "mysql_wsrep_sync_wait": group.mysql_wsrep_sync_wait,
        "sqlite_synchronous": group.sqlite_synchronous,
    }
    settings = {name: value for name, value in options.items() if value is not None}
    if unbounded:
        settings["read_timeout"] = None
    statements.log(group.connection_debug)
    _create_private_file(url)
    database = Database(url, **settings)
    if group.connection_trace:
        for engine in (database.engine, database.reading_engine):
            statements.add_source_comments(engine)
    return database


def _create_private_file(url: sa.URL) -> None:
    """Create the file of a SQLite database with mode 0600; its journals inherit the mode.

    An existing file keeps its mode.  If the file cannot be created, opening the database reports the reason.
    """
    path = url.database or ""
    if url.get_backend_name() != "sqlite" or path in ("", ":memory:") or path.startswith("file:"):
        return
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
