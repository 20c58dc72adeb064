"""Locks of a foreign transaction, released before the requests that wait for them time out."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from jepsen.clusters.cluster import Cluster
from jepsen.nemeses.nemesis import Nemesis

_TABLES = ("resource_providers", "consumers", "projects")
#: Seconds within which the foreign session must get its locks.
_LIMIT = 60.0
#: MariaDB's default isolation level, REPEATABLE READ, also locks the gaps between rows; SQLite locks the database.
_STATEMENTS = {
    "sqlite": "BEGIN IMMEDIATE",
    "mariadb": "SELECT * FROM {table} FOR UPDATE",
    "postgresql": "LOCK TABLE {table} IN EXCLUSIVE MODE",
}


class LockRows(Nemesis):
    """A lock of a table against changes, including new rows; reads continue."""

    name = "lock-rows"
    seconds = 3.0

    def applies_to(self, cluster: Cluster) -> bool:
        return cluster.kind in _STATEMENTS

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        table = rng.choice(_TABLES)
        statement = _STATEMENTS[cluster.kind].format(table=table)
        engine = sa.create_engine(cluster.database_url, poolclass=sa.NullPool)
        with engine.connect() as session:
            _lock(session, statement)
            try:
                yield {"table": table}
            finally:
                _end(session)


def _lock(session: sa.Connection, statement: str) -> None:
    """Get the locks, and retry after a deadlock with the service."""
    deadline = time.monotonic() + _LIMIT
    while True:
        try:
            session.exec_driver_sql(statement)
        except sa.exc.OperationalError:
            if time.monotonic() > deadline:
                raise
            _end(session)
        else:
            return


def _end(session: sa.Connection) -> None:
    """Release the locks; a Galera node that aborted the transaction for another node's write only reports it here."""
    try:
        session.rollback()
    except sa.exc.OperationalError:
        session.rollback()
