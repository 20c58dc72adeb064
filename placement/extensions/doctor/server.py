"""Checks of the database server: its Galera cluster, its clock, its connections."""

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

#: Maximum tolerated difference of the clocks, in seconds.
_MAX_CLOCK_DIFFERENCE = 3.0
#: Number of measurements of the clock; the measurement with the shortest round trip is used.
_MEASUREMENTS = 5
#: Minimum share of the allowed connections in use that is a finding.
_NEARLY_FULL = 0.8


def galera(subject: Subject) -> Iterator[Finding]:
    """Find problems of the Galera node to which the service is connected, and of its cluster."""
    if dialect(subject) != "mysql":
        raise NotMadeError("Only MariaDB and MySQL have Galera clusters.")
    variables = {row[0]: row[1] for row in subject.rows(sa.text("SHOW GLOBAL VARIABLES LIKE 'wsrep\\_%'"))}
    if variables.get("wsrep_on") != "ON":
        raise NotMadeError("The server is not a node of a Galera cluster.")
    status = {row[0]: row[1] for row in subject.rows(sa.text("SHOW GLOBAL STATUS LIKE 'wsrep\\_%'"))}
    yield from node_findings(variables, status)


def node_findings(variables: Mapping[str, str], status: Mapping[str, str]) -> Iterator[Finding]:
    """Find problems in the variables and the status of a Galera node, both by name."""
    node = variables.get("wsrep_node_name", "the node")
    if status.get("wsrep_cluster_status") != "Primary":
        sentence = (
            f"The node belongs to no primary component ({status.get('wsrep_cluster_status')}): it accepts no writes."
        )
        yield error(
            sentence, (node,), "Join it to the cluster; if no node is primary, bootstrap the one with all commits."
        )
    if status.get("wsrep_ready") != "ON":
        yield error("The node is not ready for queries.", (node,), "Read the log of the database server.")
    if (state := status.get("wsrep_local_state_comment")) != "Synced":
        sentence = f"The node is not synchronised ({state}): it may lag behind other nodes."
        yield warning(sentence, (node,), "Wait until it has caught up, or use another node.")
    size = int(status.get("wsrep_cluster_size", 0))
    _, _, members = variables.get("wsrep_cluster_address", "").partition("://")
    configured_size = len([member for member in members.partition("?")[0].split(",") if member])
    if size < configured_size:
        sentence = (
            f"{configured_size - size} of the {configured_size} nodes of wsrep_cluster_address are not in the cluster."
        )
        yield warning(sentence, (variables["wsrep_cluster_address"],), "Start the nodes that are missing.")
    elif size == 2:
        sentence = "The cluster has two nodes: if one fails, the other has no majority."
        yield info(sentence, (node,), "Add a third node, or an arbitrator (garbd).")


def clock(subject: Subject) -> Iterator[Finding]:
    """Find a difference between the clocks of this host and the database."""
    measurements = [_measure_clock(subject) for _ in range(_MEASUREMENTS)]
    difference, uncertainty = min(measurements, key=lambda measurement: measurement[1])
    if abs(difference) - uncertainty > _MAX_CLOCK_DIFFERENCE:
        relation = "behind" if difference > 0 else "ahead of"
        yield warning(
            f"The clock of this host is {abs(difference):.1f} seconds {relation} the clock of the database. Leases "
            "expire by the clock of the database; the dates of rows and of the log are from the host.",
            (),
            "Synchronise both clocks with NTP.",
        )


def _measure_clock(subject: Subject) -> tuple[float, float]:
    """Return the lead of the database's clock over the host's, and its uncertainty, both in seconds."""
    before = utcnow()
    ((remote,),) = subject.rows(sa.select(CLOCK))
    half = (utcnow() - before) / 2
    return ((remote - (before + half)) / datetime.timedelta(seconds=1), half / datetime.timedelta(seconds=1))


def connections(subject: Subject) -> Iterator[Finding]:
    """Find a server that has few free connections, or that allows fewer than the pools of this host may open."""
    kind = dialect(subject)
    if kind == "sqlite":
        raise NotMadeError("SQLite has no connections to a server.")
    used, allowed = _mysql_connections(subject) if kind == "mysql" else _postgresql_connections(subject)
    fix = f"Raise max_connections of the server ({allowed}), or lower max_pool_size and max_overflow of the service."
    if used >= allowed * _NEARLY_FULL:
        yield warning(f"{used} of the {allowed} connections that the server allows are in use.", (), fix)
    per_process, processes = _per_process(subject), _processes(subject)
    if per_process * processes > allowed:
        owners = f"{processes} processes" if processes > 1 else "one process"
        sentence = (
            f"The pools of {owners} on this host may open {per_process * processes} connections, but the server "
            f"allows {allowed}."
        )
        yield info(sentence, (), fix)


def _mysql_connections(subject: Subject) -> tuple[int, int]:
    """Return the numbers of open and allowed connections."""
    # The process list would be incomplete: without the privilege PROCESS it contains only the user's own processes.
    ((_, used),) = subject.rows(sa.text("SHOW GLOBAL STATUS LIKE 'Threads_connected'"))
    ((allowed,),) = subject.rows(sa.text("SELECT @@GLOBAL.max_connections"))
    return int(used), int(allowed)


def _postgresql_connections(subject: Subject) -> tuple[int, int]:
    ((used, allowed),) = subject.rows(_CONNECTIONS)
    return int(used), int(allowed)


def _per_process(subject: Subject) -> int:
    """Return the number of connections that one process may open through its queue pools and for health checks."""
    pools = [engine.pool for engine in (subject.database.engine, subject.database.reading_engine)]
    pooled = sum(pool.size() + max(pool._max_overflow, 0) for pool in pools if isinstance(pool, QueuePool))
    return pooled + 1  # for health checks


def _processes(subject: Subject) -> int:
    """Return the number of service processes on this host, counted by their metrics files; 1 without metrics."""
    directory = subject.conf.metrics.directory
    return max(1, len([*Path(directory).glob("*.alive")])) if directory else 1


_CONNECTIONS = sa.text(
    # pg_stat_activity hides the backend type of other roles' sessions.
    "SELECT (SELECT SUM(numbackends) FROM pg_stat_database WHERE datid <> 0) AS used, "
    "CAST(current_setting('max_connections') AS integer) "
    "- CAST(current_setting('superuser_reserved_connections') AS integer) AS allowed"
)
