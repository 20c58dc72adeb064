"""All clusters, workloads, nemeses and checks by name: module and attribute, imported when one is asked for."""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jepsen.clusters.cluster import Cluster
    from jepsen.nemeses.nemesis import Nemesis
    from jepsen.violation import Check
    from jepsen.workloads.workload import Workload

#: Subclasses of Cluster.
CLUSTERS = {
    "sqlite": "clusters.single_database:SQLite",
    "mariadb": "clusters.single_database:MariaDB",
    "postgresql": "clusters.single_database:PostgreSQL",
    "other-sqlite": "clusters.other_implementation:SQLite",
    "other-mariadb": "clusters.other_implementation:MariaDB",
    "other-postgresql": "clusters.other_implementation:PostgreSQL",
    "mariadb-pair": "clusters.pairs:MariaDBPair",
    "mariadb-pair-semisync": "clusters.pairs:MariaDBSemiSynchronous",
    "postgresql-pair": "clusters.pairs:PostgreSQLPair",
    "postgresql-pair-sync": "clusters.pairs:PostgreSQLSynchronous",
    "galera": "clusters.galera:Galera",
    "galera-all": "clusters.galera:GaleraAll",
    "mariadb-hosts": "clusters.hosts:MariaDBHosts",
    "postgresql-hosts": "clusters.hosts:PostgreSQLHosts",
    "postgresql-hosts-sync": "clusters.hosts:PostgreSQLSynchronousHosts",
    "galera-hosts": "clusters.hosts:GaleraHosts",
}
#: Subclasses of Workload.
WORKLOADS = {
    "trees": "workloads.trees:Trees",
    "families": "workloads.families:Families",
    "bank": "workloads.bank:Bank",
    "registers": "workloads.registers:Registers",
    "places": "workloads.places:Places",
    "leases": "workloads.leases:Leases",
    "machines": "workloads.machines:Machines",
}
#: Subclasses of Nemesis.
NEMESES: dict[str, str] = {
    "switch-over": "nemeses.switchover:Switchover",
    "switch-over-unfenced": "nemeses.switchover:Split",
    "fail-over": "nemeses.switchover:Failover",
    "fail-over-synchronous": "nemeses.switchover:FailoverWithoutLoss",
    "restart-hosts": "nemeses.hosts:RollingRestart",
    "add-and-remove-host": "nemeses.hosts:MoreAndFewer",
    "kill-host": "nemeses.hosts:KilledHost",
    "upgrade-hosts": "nemeses.hosts:RollingUpgrade",
    "kill-worker": "nemeses.processes:KillWorker",
    "pause-worker": "nemeses.processes:PauseWorker",
    "kill-service": "nemeses.processes:KillService",
    "reload-service": "nemeses.processes:ReloadService",
    "kill-database": "nemeses.processes:KillDatabase",
    "pause-database": "nemeses.processes:PauseDatabase",
    "restart-database": "nemeses.processes:RestartDatabase",
    "reset-connections": "nemeses.proxies:ResetConnections",
    "refuse-connections": "nemeses.proxies:RefuseConnections",
    "delay-packets": "nemeses.proxies:DelayPackets",
    "drop-packets": "nemeses.proxies:DropPackets",
    "cut-after-commit": "nemeses.proxies:CutAfterCommit",
    "cut-before-commit": "nemeses.proxies:CutBeforeCommit",
    "lock-rows": "nemeses.locks:LockRows",
    "pool-of-one": "nemeses.pools:PoolOfOne",
    "take-connections": "nemeses.pools:TakeConnections",
    "service-clock": "nemeses.clocks:ServiceClock",
    "database-clock": "nemeses.clocks:DatabaseClock",
    "lose-tail": "nemeses.crashes:LoseTail",
    "restore-backup": "nemeses.restore:RestoreBackup",
    "kill-node": "nemeses.nodes:KillNode",
    "pause-node": "nemeses.nodes:PauseNode",
    "pause-node-briefly": "nemeses.nodes:PauseNodeBriefly",
    "partition-node": "nemeses.nodes:PartitionNode",
    "isolate-node": "nemeses.nodes:IsolateNode",
    "kill-all-nodes": "nemeses.nodes:KillAllNodes",
    "restart-nodes": "nemeses.nodes:RestartNodes",
    "restart-haproxy": "nemeses.nodes:RestartBalancer",
    "reload-haproxy": "nemeses.nodes:ReloadBalancer",
}
#: Functions of a history (violation.Check), by the name of the invariant.
CHECKS: dict[str, str] = {
    "consumers": "checker.consumers:consumers",
    "generations": "checker.generations:generations",
    "contents": "checker.contents:contents",
    "replies": "checker.replies:replies",
    "collisions": "checker.collisions:collisions",
    "bank": "checker.bank:bank",
    "refusals": "checker.refusals:refusals",
    "places": "checker.places:places",
    "leases": "checker.leases:leases",
    "machines": "checker.machines:machines",
    "trees": "checker.trees:trees",
    "feed": "checker.feed:feed",
    "indices": "checker.indices:indices",
    "soundness": "checker.indices:soundness",
}
#: What each check finds violated, by its name.
INVARIANTS: Mapping[str, Collection[str]] = {
    "consumers": {"consumers: linearizable"},
    "generations": {"generations: linearizable"},
    "contents": {"contents as written"},
    "replies": {"no 5xx but 503", "away only beside an event", "no internals in errors"},
    "collisions": {"no refusal for collisions"},
    "bank": {
        "bank: constant sum",
        "bank: a prefix survives",
        "bank: acknowledged writes included",
        "bank: nothing from nowhere",
        "bank: one order of commits",
        "bank: reads never go back",
    },
    "refusals": {"each refusal for room is explained", "never more than the capacity"},
    "places": {
        "a result for each request",
        "all or nothing",
        "mappings of what is held",
        "places apart",
        "places as asked for",
        "places together",
    },
    "leases": {
        "no lease ends before its time",
        "a lease is over at its time",
        "an extension and the end exclude each other",
    },
    "machines": {"a node has one holder", "records agree with claims", "no request fails while a node is free"},
    "trees": {
        "trees without loops, with right roots",
        "a read shows one tree",
        "parents as written",
        "births included",
    },
    "feed": {"feed numbers without gaps", "a feed row for each change"},
    "indices": {"each index is that of the database"},
    "soundness": {"sound rows"},
}


def cluster(name: str) -> type[Cluster]:
    """Return a cluster's class; raises KeyError."""
    return _find(CLUSTERS, name)


def workload(name: str) -> type[Workload]:
    """Return a workload's class; raises KeyError."""
    return _find(WORKLOADS, name)


def nemesis(name: str) -> type[Nemesis]:
    """Return a nemesis' class; raises KeyError."""
    return _find(NEMESES, name)


def checks() -> dict[str, Check]:
    """Return all checks by name."""
    return {name: _find(CHECKS, name) for name in CHECKS}


def _find(registry: Mapping[str, str], name: str) -> Any:
    return pkgutil.resolve_name(f"jepsen.{registry[name]}")
