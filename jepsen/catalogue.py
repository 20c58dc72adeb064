"""Clusters, workloads, nemeses and checks by name, imported on first use."""

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
    "switch-over-unfenced": "nemeses.switchover:UnfencedSwitchover",
    "fail-over": "nemeses.switchover:Failover",
    "fail-over-synchronous": "nemeses.switchover:FailoverWithoutLoss",
    "restart-hosts": "nemeses.hosts:RollingRestart",
    "add-and-remove-host": "nemeses.hosts:AddAndRemoveHost",
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
#: Checks (violation.Check) by name.
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
#: Invariants of each check.
INVARIANTS: Mapping[str, Collection[str]] = {
    "consumers": {"consumers: linearizable"},
    "generations": {"generations: linearizable"},
    "contents": {"contents as written"},
    "replies": {"no 5xx except 503", "unavailable only around an event", "no internals in error bodies"},
    "collisions": {"no refusal for collisions"},
    "bank": {
        "bank: constant sum",
        "bank: a prefix survives",
        "bank: reads include acknowledged writes",
        "bank: no out-of-thin-air reads",
        "bank: one commit order",
        "bank: monotonic reads",
    },
    "refusals": {"refusals for capacity are explained", "capacity is never exceeded"},
    "places": {
        "a result for each request",
        "all or nothing",
        "mappings match the holdings",
        "places apart",
        "places as requested",
        "places together",
    },
    "leases": {
        "no lease expires early",
        "leases expire on time",
        "no extension after expiry",
    },
    "machines": {"a node has one holder", "records agree with claims", "no request fails while a node is free"},
    "trees": {
        "trees without cycles, with correct roots",
        "a read shows one tree",
        "parents as written",
        "acknowledged children included",
    },
    "feed": {"feed numbers without gaps", "a feed row for each change"},
    "indices": {"each index matches the database"},
    "soundness": {"consistent rows"},
}


def cluster(name: str) -> type[Cluster]:
    """Return the class of a cluster; raise KeyError for an unknown name."""
    return _find(CLUSTERS, name)


def workload(name: str) -> type[Workload]:
    """Return the class of a workload; raise KeyError for an unknown name."""
    return _find(WORKLOADS, name)


def nemesis(name: str) -> type[Nemesis]:
    """Return the class of a nemesis; raise KeyError for an unknown name."""
    return _find(NEMESES, name)


def checks() -> dict[str, Check]:
    """Return all checks by name."""
    return {name: _find(CHECKS, name) for name in CHECKS}


def _find(registry: Mapping[str, str], name: str) -> Any:
    return pkgutil.resolve_name(f"jepsen.{registry[name]}")
