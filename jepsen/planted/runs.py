"""The run that finds each fault, and the invariant that the fault violates.

    python -m jepsen.planted.runs

prints the table.  jepsen/tests/test_planted.py fails if a run does not find its fault.  Faults in row locks need a
database with row locks; the others run on SQLite, which starts fastest.  MariaDB also locks the joined rows of a
statement, so faults in the locks of roots run on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jepsen import catalogue
from jepsen.clusters.cluster import Cluster
from jepsen.planted.faults import VARIABLE
from jepsen.run import Plan, Result, run

#: Seed of all choices of clients and nemeses.
_SEED = 13
#: Maximum number of runs per fault.
_RUNS = 3


@dataclass(frozen=True, slots=True)
class PlantedRun:
    """The run that finds a fault.

    Attributes:
        fault: Name of the fault; empty for a run without a fault.
        invariant: Name of the invariant that the fault violates.
        workload: Name of the workload; ``cluster`` and ``nemesis`` are names, too.
        nemesis: Empty: nothing is harmed.
        seconds: Time for which clients work.
        quick: Whether short test runs include it.
        also: Names of further invariants that only this fault violates.
    """

    fault: str
    invariant: str
    workload: str
    cluster: str = "sqlite"
    nemesis: str = ""
    seconds: float = 10.0
    quick: bool = False
    also: Sequence[str] = ()

    @property
    def invariants(self) -> Collection[str]:
        """All invariants that the run must violate."""
        return {self.invariant, *self.also}

    @property
    def without_fault(self) -> PlantedRun:
        """The same run without the fault."""
        return PlantedRun("", "", self.workload, self.cluster, self.nemesis, self.seconds)

    def carry_out(self) -> Result:
        """Start the cluster with the fault, and return the result of the run; may raise servers.Missing.

        The outcome depends on the timing of the machine, so a run that misses the fault is repeated with other seeds.
        """
        nemeses = [self.nemesis] if self.nemesis else []
        with self._cluster() as cluster:
            for seed in range(_SEED, _SEED + (_RUNS if self.fault else 1)):
                result = run(cluster, Plan([self.workload], nemeses, self.seconds, seed, peace=1.0))
                if self.invariants <= {violation.invariant for violation in result.violations}:
                    break
            return result

    def _cluster(self) -> Cluster:
        return catalogue.cluster(self.cluster)(environment={VARIABLE: self.fault})


RUNS = [
    # --- claims ---
    PlantedRun("usage-read-before-lock", "consistent rows", "families", "mariadb"),
    PlantedRun("capacity-not-compared", "capacity is never exceeded", "registers", seconds=3.0, quick=True),
    PlantedRun("last-unit-refused", "refusals for capacity are explained", "registers"),
    PlantedRun("consumer-generation-not-compared", "consumers: linearizable", "registers", seconds=3.0),
    PlantedRun("consumer-generation-not-raised", "consumers: linearizable", "registers"),
    PlantedRun("owner-not-written", "consumers: linearizable", "registers"),
    PlantedRun("consumer-row-not-deleted", "consistent rows", "registers"),
    PlantedRun("allocations-not-deleted", "consistent rows", "registers"),
    PlantedRun("orphan-deleted-during-claim", "consumers: linearizable", "registers", "mariadb"),
    PlantedRun("post-in-several-transactions", "bank: constant sum", "bank", seconds=3.0, quick=True),
    PlantedRun("single-attempt", "no refusal for collisions", "registers", "mariadb"),
    PlantedRun("refused-reported-as-done", "consumers: linearizable", "registers"),
    # --- providers ---
    PlantedRun("provider-generation-not-compared", "generations: linearizable", "registers"),
    PlantedRun("provider-generation-not-raised", "generations: linearizable", "registers"),
    PlantedRun("cycles-not-refused", "trees without cycles, with correct roots", "trees"),
    PlantedRun("roots-not-locked-by-moves", "trees without cycles, with correct roots", "families", "postgresql"),
    PlantedRun("root-not-locked-by-creation", "trees without cycles, with correct roots", "families", "postgresql"),
    PlantedRun("ids-remembered", "consumers: linearizable", "registers", nemesis="restore-backup"),
    PlantedRun("class-deleted-during-inventory-write", "consistent rows", "families", "mariadb"),
    PlantedRun("move-not-written", "parents as written", "trees"),
    PlantedRun("name-not-written", "contents as written", "trees"),
    PlantedRun("root-omitted", "a read shows one tree", "trees", seconds=5.0),
    PlantedRun("leaves-omitted", "acknowledged children included", "trees", seconds=5.0),
    # --- places chosen by the service ---
    PlantedRun("more-claimed-than-requested", "places as requested", "places", seconds=5.0),
    PlantedRun("copies-on-one-provider", "places as requested", "places"),
    PlantedRun("held-for-any-request", "consumers: linearizable", "places"),
    PlantedRun("results-reordered", "a result for each request", "places", seconds=5.0),
    PlantedRun("mappings-of-earlier-place", "mappings match the holdings", "places"),
    PlantedRun("more-written-than-reported", "consumers: linearizable", "places", seconds=5.0),
    PlantedRun("place-of-another-consumer", "consumers: linearizable", "places"),
    PlantedRun("all-or-nothing-ignored", "all or nothing", "places"),
    PlantedRun("partial-claim-reported-as-refused", "consumers: linearizable", "places"),
    PlantedRun("apart-from-ignored", "places apart", "places", seconds=5.0),
    PlantedRun("together-with-ignored", "places together", "places", seconds=5.0),
    PlantedRun("own-release-ignored", "refusals for capacity are explained", "leases", seconds=20.0),
    # --- leases ---
    PlantedRun("lease-shorter-than-reported", "no lease expires early", "leases"),
    PlantedRun("all-swept-when-one-expires", "no lease expires early", "leases", seconds=5.0),
    PlantedRun("swept-during-extension", "no lease expires early", "leases", "mariadb", seconds=30.0),
    PlantedRun("shown-after-expiry", "leases expire on time", "leases"),
    PlantedRun("extended-after-expiry", "no extension after expiry", "leases"),
    PlantedRun("stalled-extension-answered-with-404", "no lease expires early", "leases"),
    PlantedRun("extension-not-written", "no lease expires early", "leases"),
    PlantedRun("expiry-lost-by-move", "consumers: linearizable", "leases"),
    PlantedRun("expired-lease-keeps-capacity", "refusals for capacity are explained", "leases", seconds=20.0),
    # --- bare metal nodes ---
    PlantedRun("chosen-node-not-rechecked", "a node has one holder", "machines"),
    PlantedRun("record-not-deleted", "records agree with claims", "machines"),
    PlantedRun("no-retry-on-other-nodes", "no request fails while a node is free", "machines"),
    # --- the feed and the index ---
    PlantedRun(
        *("usage-not-in-the-feed", "a feed row for each change", "bank"),
        seconds=3.0,
        quick=True,
        also=["bank: one commit order"],
    ),
    PlantedRun("number-used-twice", "bank: reads include acknowledged writes", "bank"),
    PlantedRun("number-skipped", "feed numbers without gaps", "bank"),
    PlantedRun(
        *("lost-tail-not-noticed", "bank: monotonic reads", "bank"),
        nemesis="restore-backup",
        also=["bank: a prefix survives", "bank: no out-of-thin-air reads"],
    ),
    PlantedRun("stale-snapshot", "bank: reads include acknowledged writes", "bank", seconds=3.0),
    PlantedRun("earlier-refresh-shared", "bank: reads include acknowledged writes", "bank"),
    PlantedRun("usage-not-applied", "each index matches the database", "bank", seconds=3.0),
    # --- responses ---
    PlantedRun("spurious-unavailability", "unavailable only around an event", "registers", seconds=3.0),
    PlantedRun("conflict-not-handled", "no 5xx except 503", "registers", seconds=3.0),
    PlantedRun("statement-in-error", "no internals in error bodies", "registers", seconds=3.0),
    # --- commits ---
    PlantedRun("answered-before-commit", "bank: reads include acknowledged writes", "bank"),
    PlantedRun("answered-without-commit", "bank: reads include acknowledged writes", "bank"),
    PlantedRun(
        "unknown-outcome-reported-as-refused", "consumers: linearizable", "registers", "mariadb", "cut-after-commit"
    ),
    PlantedRun("unknown-outcome-retried", "consumers: linearizable", "registers", "mariadb", "cut-after-commit"),
]


def _main() -> None:
    from jepsen.planted.faults import faults

    for planted in RUNS:
        place = f"{planted.workload} on {planted.cluster}{f' with {planted.nemesis!r}' if planted.nemesis else ''}"
        summary = (faults()[planted.fault].__doc__ or "").strip().splitlines()[0]
        print(f"{planted.fault}\t{summary}\t{place}, {planted.seconds:g} s\t{planted.invariant}")


if __name__ == "__main__":
    _main()
