"""Checks of the database's server: the Galera cluster, the clock, the connections."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from placement.checks.check import NotMadeError, Subject
from placement.checks.finding import Finding, error, info, warning
from placement.db.schema.clock import CLOCK
from placement.db.schema.tables import utcnow
from placement.extensions.doctor.database import dialect

#: Seconds by which clocks may differ.
_CLOCK = 3.0
#: Measurements of the clock; the one with the shortest round trip counts.
_LOOKS = 5
#: The share of all connections from which on they are too many.
_FULL = 0.8


def galera(subject: Subject) -> Iterator[Finding]:
    """Find what is wrong with the node of a Galera cluster that the service is connected to, and with its cluster."""
    if dialect(subject) != "mysql":
        raise NotMadeError("Only MariaDB and MySQL have Galera clusters.")
    variables = {row[0]: row[1] for row in subject.rows(sa.text("SHOW GLOBAL VARIABLES LIKE 'wsrep\\_%'"))}
    if variables.get("wsrep_on") != "ON":
        raise NotMadeError("The server is no node of a Galera cluster.")
    status = {row[0]: row[1] for row in subject.rows(sa.text("SHOW GLOBAL STATUS LIKE 'wsrep\\_%'"))}
    yield from of_node(variables, status)


def of_node(variables: Mapping[str, str], status: Mapping[str, str]) -> Iterator[Finding]:
    """Find what the variables and the status of a Galera node say, by their names."""
    node = variables.get("wsrep_node_name", "the node")
    if status.get("wsrep_cluster_status") != "Primary":
        sentence = (
            f"The node belongs to no primary component ({status.get('wsrep_cluster_status')}): it takes no writes."
        )
        yield error(
            sentence, (node,), "Join it to the cluster; if no node is primary, bootstrap the one with all commits."
        )
    if status.get("wsrep_ready") != "ON":
        yield error("The node is not ready for queries.", (node,), "Read the log of the database's server.")
    if (state := status.get("wsrep_local_state_comment")) != "Synced":
        sentence = f"The node is not synchronised ({state}): it may be behind the others."
        yield warning(sentence, (node,), "Wait until it has caught up, or use another node.")
    size = int(status.get("wsrep_cluster_size", 0))
    _, _, members = variables.get("wsrep_cluster_address", "").partition("://")
    wanted = len([member for member in members.partition("?")[0].split(",") if member])
    if size < wanted:
        sentence = f"{wanted - size} of the {wanted} nodes of wsrep_cluster_address are not in the cluster."
        yield warning(sentence, (variables["wsrep_cluster_address"],), "Start the nodes that are missing.")
    elif size == 2:
        sentence = "The cluster has two nodes: without one of them, the other one has no majority."
        yield info(sentence, (node,), "Add a third node, or an arbitrator (garbd).")


def clock(subject: Subject) -> Iterator[Finding]:
    """Find that the clock of this host and that of the database differ."""
    looks = [_look(subject) for _ in range(_LOOKS)]
    difference, trip = min(looks, key=lambda look: look[1])
    if abs(difference) - trip > _CLOCK:
        ahead = "behind" if difference > 0 else "ahead of"
        yield warning(
            f"The clock of this host is {abs(difference):.1f} seconds {ahead} that of the database. The ends of leases "
            "are times of the database, the dates of rows and of the log those of the host.",
            (),
            "Synchronise both by NTP.",
        )


def _look(subject: Subject) -> tuple[float, float]:
    """Return how many seconds the database's clock is ahead of the host's, and the half of the round trip."""
    before = utcnow()
    ((there,),) = subject.rows(sa.select(CLOCK))
    half = (utcnow() - before) / 2
    return ((there - (before + half)) / datetime.timedelta(seconds=1), half / datetime.timedelta(seconds=1))


def connections(subject: Subject) -> Iterator[Finding]:
    """Find that the server has few connections left, or too few for the processes of this host."""
    kind = dialect(subject)
    if kind == "sqlite":
        raise NotMadeError("SQLite has no connections to a server.")
    used, most = _mysql(subject) if kind == "mysql" else _postgresql(subject)
    fix = f"Raise max_connections of the server ({most}), or lower max_pool_size and max_overflow of the service."
    if used >= most * _FULL:
        yield warning(f"{used} of the {most} connections that the server allows are in use.", (), fix)
    per_process, processes = _of_process(subject), _processes(subject)
    if per_process * processes > most:
        several = f"{processes} processes" if processes > 1 else "one process"
        sentence = (
            f"The pools of {several} of this host may open {per_process * processes} connections, and the server "
            f"allows {most}."
        )
        yield info(sentence, (), fix)


def _mysql(subject: Subject) -> tuple[int, int]:
    """Return how many connections the server has, and how many it allows."""
    # Not the list of processes: without the privilege PROCESS it has only those of the user.
    ((_, used),) = subject.rows(sa.text("SHOW GLOBAL STATUS LIKE 'Threads_connected'"))
    ((most,),) = subject.rows(sa.text("SELECT @@GLOBAL.max_connections"))
    return int(used), int(most)


def _postgresql(subject: Subject) -> tuple[int, int]:
    ((used, most),) = subject.rows(_POSTGRESQL)
    return int(used), int(most)


def _of_process(subject: Subject) -> int:
    """Return how many connections one process opens at most; 1 if its pools have no limit."""
    pools = [engine.pool for engine in (subject.database.engine, subject.database.reading_engine)]
    most = sum(pool.size() + max(pool._max_overflow, 0) for pool in pools if isinstance(pool, QueuePool))
    return most + 1  # for health checks


def _processes(subject: Subject) -> int:
    """Return how many processes of the service run on this host, as far as their metrics show it."""
    directory = subject.conf.metrics.directory
    return max(1, len([*Path(directory).glob("*.alive")])) if directory else 1


_POSTGRESQL = sa.text(
    # Of other roles' sessions pg_stat_activity shows no kind.
    "SELECT (SELECT SUM(numbackends) FROM pg_stat_database WHERE datid <> 0) AS used, "
    "CAST(current_setting('max_connections') AS integer) "
    "- CAST(current_setting('superuser_reserved_connections') AS integer) AS most"
)
