"""The transaction of a stranger holds locks, for less time than requests wait for them."""

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
#: Seconds in which the stranger gets its locks.
_LIMIT = 60.0
#: MariaDB's default, REPEATABLE READ, locks the gaps between the rows too; SQLite locks the database.
_STATEMENTS = {
    "sqlite": "BEGIN IMMEDIATE",
    "mariadb": "SELECT * FROM {table} FOR UPDATE",
    "postgresql": "LOCK TABLE {table} IN EXCLUSIVE MODE",
}


class LockRows(Nemesis):
    """One table is locked against changes, new rows included; reads go on."""

    name = "lock-rows"
    seconds = 3.0

    def applies_to(self, cluster: Cluster) -> bool:
        return cluster.kind in _STATEMENTS

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, chance: random.Random) -> Iterator[dict[str, Any]]:
        table = chance.choice(_TABLES)
        statement = _STATEMENTS[cluster.kind].format(table=table)
        engine = sa.create_engine(cluster.database_url, poolclass=sa.NullPool)
        with engine.connect() as stranger:
            _lock(stranger, statement)
            try:
                yield {"table": table}
            finally:
                _end(stranger)


def _lock(stranger: sa.Connection, statement: str) -> None:
    """Return once the locks are held; in a deadlock with the service, the stranger begins again."""
    deadline = time.monotonic() + _LIMIT
    while True:
        try:
            stranger.exec_driver_sql(statement)
        except sa.exc.OperationalError:
            if time.monotonic() > deadline:
                raise
            _end(stranger)
        else:
            return


def _end(stranger: sa.Connection) -> None:
    """Release the locks; a node of Galera that ended the transaction for another node's write says so only now."""
    try:
        stranger.rollback()
    except sa.exc.OperationalError:
        stranger.rollback()
