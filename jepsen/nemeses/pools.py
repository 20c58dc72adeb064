"""Shortages of database connections: pools of size one, and a foreign client that takes all connections."""

from __future__ import annotations

import configparser
import contextlib
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from jepsen.clusters.cluster import Cluster
from jepsen.nemeses.nemesis import Nemesis

_SINGLE_CONNECTION = {"max_pool_size": "1", "max_overflow": "0", "pool_timeout": "5"}
#: Statements: id of this session, ids of all sessions on this database, and termination of a session.
_SESSIONS = {
    "mariadb": (
        "SELECT CONNECTION_ID()",
        "SELECT id FROM information_schema.processlist WHERE db = DATABASE()",
        "KILL {session}",
    ),
    "postgresql": (
        "SELECT pg_backend_pid()",
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()",
        "SELECT pg_terminate_backend({session})",
    ),
}
#: Rounds in which other sessions are ended, because the services open new ones meanwhile.
_ROUNDS = 3


class PoolOfOne(Nemesis):
    """A service with one connection per pool, for which its threads wait; it is restarted before and after."""

    name = "pool-of-one"
    kills = "worker"
    seconds = 5.0

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.services) and cluster.shows_state  # its configuration file is changed

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        number = rng.randrange(len(cluster.services))
        service = cluster.services[number]
        path = service.directory / "placement.conf"
        original = path.read_text()
        _configure(path, _SINGLE_CONNECTION)
        try:
            service.restart()
            yield {"service": number}
        finally:
            path.write_text(original)
            service.restart()


def _configure(path: Path, options: Mapping[str, str]) -> None:
    configuration = configparser.RawConfigParser()
    configuration.read(path)
    configuration.read_dict({"placement_database": options})
    with path.open("w") as file:
        configuration.write(file)


class TakeConnections(Nemesis):
    """A foreign client that ends the sessions of the services, and opens as many as the server allows."""

    name = "take-connections"

    def applies_to(self, cluster: Cluster) -> bool:
        return bool(cluster.servers) and cluster.kind in _SESSIONS

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        own_id, all_ids, termination = _SESSIONS[cluster.kind]
        engine = sa.create_engine(cluster.database_url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(engine.connect())
            own_sessions = {first.exec_driver_sql(own_id).scalar_one()}
            for _ in range(_ROUNDS):
                for session in {*first.exec_driver_sql(all_ids).scalars()} - own_sessions:
                    with contextlib.suppress(sa.exc.DBAPIError):  # it may have ended already
                        first.exec_driver_sql(termination.format(session=session))
                own_sessions.update(_take_all(stack, engine, own_id))
            yield {"connections": len(own_sessions)}


def _take_all(stack: contextlib.ExitStack, engine: sa.Engine, own_id: str) -> Iterator[int]:
    """Open sessions until the server refuses one, and yield their ids."""
    with contextlib.suppress(sa.exc.OperationalError):
        while True:
            yield stack.enter_context(engine.connect()).exec_driver_sql(own_id).scalar_one()
