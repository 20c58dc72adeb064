"""Which run finds each fault, and by which invariant.

    python -m jepsen.planted.runs

prints the table.  A fault that its run does not find is a failure of jepsen/tests/test_planted.py.  Where only row
locks keep transactions apart, the database has to be one with row locks; the others are found on SQLite, which starts
fastest.  MariaDB locks the rows that a statement joins, too, so moves without locks of roots are on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jepsen import catalogue
from jepsen.clusters.cluster import Cluster
from jepsen.planted.faults import VARIABLE
from jepsen.run import Plan, Result, run

#: Of all choices of clients and nemeses.
_SEED = 13
#: Runs of one fault, at most.
_RUNS = 3


@dataclass(frozen=True, slots=True)
class PlantedRun:
    """The run that finds a fault.

    Attributes:
        fault: Its name; empty for a run without a fault.
        invariant: The name of the invariant that it violates.
        also: The names of others that it violates, and that no other fault is planted for.
        workload: By name, as cluster and nemesis; without a nemesis nothing is broken beside.
        seconds: How long clients work.
        quick: Whether it is among the few that every test run has.
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
        """All that it has to violate."""
        return {self.invariant, *self.also}

    @property
    def without_fault(self) -> PlantedRun:
        """The same run of the service as it is."""
        return PlantedRun("", "", self.workload, self.cluster, self.nemesis, self.seconds)

    def carry_out(self) -> Result:
        """Start the cluster with the fault, and return what the run found; raises servers.Missing.

        What happens depends on the machine, so a run that did not find the fault is followed by others of the next
        seeds.
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
    PlantedRun("fit-read-before-the-lock", "sound rows", "families", "mariadb"),
    PlantedRun("capacity-not-compared", "never more than the capacity", "registers", seconds=3.0, quick=True),
    PlantedRun("last-unit-refused", "each refusal for room is explained", "registers"),
    PlantedRun("consumer-generation-not-compared", "consumers: linearizable", "registers", seconds=3.0),
    PlantedRun("consumer-generation-not-raised", "consumers: linearizable", "registers"),
    PlantedRun("owner-not-written", "consumers: linearizable", "registers"),
    PlantedRun("consumer-row-left", "sound rows", "registers"),
    PlantedRun("allocations-left", "sound rows", "registers"),
    PlantedRun("ghost-ended-beside-a-claim", "consumers: linearizable", "registers", "mariadb"),
    PlantedRun("post-in-several-transactions", "bank: constant sum", "bank", seconds=3.0, quick=True),
    PlantedRun("one-attempt", "no refusal for collisions", "registers", "mariadb"),
    PlantedRun("refused-told-as-done", "consumers: linearizable", "registers"),
    # --- providers ---
    PlantedRun("provider-generation-not-compared", "generations: linearizable", "registers"),
    PlantedRun("provider-generation-not-raised", "generations: linearizable", "registers"),
    PlantedRun("loops-not-refused", "trees without loops, with right roots", "trees"),
    PlantedRun("roots-not-locked-by-moves", "trees without loops, with right roots", "families", "postgresql"),
    PlantedRun("root-not-locked-by-births", "trees without loops, with right roots", "families", "postgresql"),
    PlantedRun("ids-remembered", "consumers: linearizable", "registers", nemesis="restore-backup"),
    PlantedRun("class-deleted-beside-an-inventory", "sound rows", "families", "mariadb"),
    PlantedRun("move-not-written", "parents as written", "trees"),
    PlantedRun("name-not-written", "contents as written", "trees"),
    PlantedRun("root-left-out", "a read shows one tree", "trees", seconds=5.0),
    PlantedRun("leaves-left-out", "births included", "trees", seconds=5.0),
    # --- places that the service chooses ---
    PlantedRun("more-claimed-than-asked", "places as asked for", "places", seconds=5.0),
    PlantedRun("copies-on-one-provider", "places as asked for", "places"),
    PlantedRun("held-whatever-was-asked", "consumers: linearizable", "places"),
    PlantedRun("results-in-another-order", "a result for each request", "places", seconds=5.0),
    PlantedRun("mappings-of-an-earlier-place", "mappings of what is held", "places"),
    PlantedRun("more-written-than-told", "consumers: linearizable", "places", seconds=5.0),
    PlantedRun("held-by-another", "consumers: linearizable", "places"),
    PlantedRun("all-or-nothing-not-minded", "all or nothing", "places"),
    PlantedRun("some-kept-of-nothing", "consumers: linearizable", "places"),
    PlantedRun("apart-from-not-minded", "places apart", "places", seconds=5.0),
    PlantedRun("together-with-not-minded", "places together", "places", seconds=5.0),
    PlantedRun("own-release-not-minded", "each refusal for room is explained", "leases", seconds=20.0),
    # --- leases ---
    PlantedRun("lease-shorter-than-told", "no lease ends before its time", "leases"),
    PlantedRun("all-swept-when-one-is-over", "no lease ends before its time", "leases", seconds=5.0),
    PlantedRun("swept-beside-an-extension", "no lease ends before its time", "leases", "mariadb", seconds=30.0),
    PlantedRun("shown-after-its-end", "a lease is over at its time", "leases"),
    PlantedRun("extended-after-its-end", "an extension and the end exclude each other", "leases"),
    PlantedRun("stalled-extension-answered-with-404", "no lease ends before its time", "leases"),
    PlantedRun("extension-not-written", "no lease ends before its time", "leases"),
    PlantedRun("end-lost-by-a-move", "consumers: linearizable", "leases"),
    PlantedRun("expired-lease-keeps-its-room", "each refusal for room is explained", "leases", seconds=20.0),
    # --- bare metal nodes ---
    PlantedRun("node-taken-as-chosen", "a node has one holder", "machines"),
    PlantedRun("record-left", "records agree with claims", "machines"),
    PlantedRun("no-other-node", "no request fails while a node is free", "machines"),
    # --- the feed and the index ---
    PlantedRun(
        *("usage-not-in-the-feed", "a feed row for each change", "bank"),
        seconds=3.0,
        quick=True,
        also=["bank: one order of commits"],
    ),
    PlantedRun("number-used-twice", "bank: acknowledged writes included", "bank"),
    PlantedRun("number-left-out", "feed numbers without gaps", "bank"),
    PlantedRun(
        *("lost-tail-not-noticed", "bank: reads never go back", "bank"),
        nemesis="restore-backup",
        also=["bank: a prefix survives", "bank: nothing from nowhere"],
    ),
    PlantedRun("old-snapshot", "bank: acknowledged writes included", "bank", seconds=3.0),
    PlantedRun("refresh-shared-that-began-earlier", "bank: acknowledged writes included", "bank"),
    PlantedRun("usage-left-out", "each index is that of the database", "bank", seconds=3.0),
    # --- replies ---
    PlantedRun("away-for-a-moment", "away only beside an event", "registers", seconds=3.0),
    PlantedRun("conflict-not-expected", "no 5xx but 503", "registers", seconds=3.0),
    PlantedRun("statement-in-the-error", "no internals in errors", "registers", seconds=3.0),
    # --- commits ---
    PlantedRun("answered-before-commit", "bank: acknowledged writes included", "bank"),
    PlantedRun("answered-without-commit", "bank: acknowledged writes included", "bank"),
    PlantedRun("unknown-told-as-refused", "consumers: linearizable", "registers", "mariadb", "cut-after-commit"),
    PlantedRun("unknown-run-again", "consumers: linearizable", "registers", "mariadb", "cut-after-commit"),
]


def _main() -> None:
    from jepsen.planted.faults import faults

    for planted in RUNS:
        place = f"{planted.workload} on {planted.cluster}{f' beside {planted.nemesis!r}' if planted.nemesis else ''}"
        about = (faults()[planted.fault].__doc__ or "").strip().splitlines()[0]
        print(f"{planted.fault}\t{about}\t{place}, {planted.seconds:g} s\t{planted.invariant}")


if __name__ == "__main__":
    _main()
