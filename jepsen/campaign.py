"""A series of runs on one cluster: every nemesis in turn, with changing workloads."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jepsen import catalogue
from jepsen.clusters.cluster import Cluster
from jepsen.history import History
from jepsen.run import RECOVERS, Plan, Result, run
from jepsen.violation import Violation

#: Workloads of one run.
_CONCURRENT_WORKLOADS = 2


@dataclass(frozen=True, slots=True)
class Campaign:
    """The plan of a series of runs.

    Attributes:
        seconds: Time after which no further run begins; there is at least one.
        seed: Seed of the first run; it grows by one with each run.
        segment: Seconds per run.  Each run creates its own consumers and is checked by itself, which bounds memory and
            the time of the checks.
        peace: Seconds before each nemesis.
    """

    cluster: str
    workloads: Sequence[str]
    nemeses: Sequence[str]
    seconds: float
    seed: int = 0
    segment: float = 60.0
    peace: float = 3.0

    def runs(self) -> Iterator[Result]:
        """Yield the result of each run; a cluster that did not recover is replaced by a new one."""
        end, run_count, event_count, is_over = time.monotonic() + self.seconds, 0, 0, False
        while not is_over:
            with catalogue.cluster(self.cluster)() as cluster:
                workloads, nemeses = self._applicable_workloads(cluster), self._applicable_nemeses(cluster)
                recovered = True
                while recovered and not is_over:
                    result = self._run(cluster, self._plan(run_count, workloads, _rotate(nemeses, event_count)))
                    run_count += 1
                    event_count += len(result.history.events)
                    recovered, is_over = result.recovered, time.monotonic() > end
                    yield result

    def _run(self, cluster: Cluster, plan: Plan) -> Result:
        try:
            return run(cluster, plan)
        except Exception as error:
            # A bug in this package, or a cluster that did not restart: the next run gets a new cluster.
            traceback.print_exc()
            description = {"cluster": self.cluster, "workloads": [*plan.workloads], "seed": plan.seed}
            return Result(History(description, [], []), [Violation(RECOVERS, f"the run failed: {error!r}")], None)

    def _applicable_nemeses(self, cluster: Cluster) -> Sequence[str]:
        return [name for name in self.nemeses if catalogue.nemesis(name)().applies_to(cluster)]

    def _applicable_workloads(self, cluster: Cluster) -> Sequence[str]:
        return [name for name in self.workloads if cluster.shows_state or not catalogue.workload(name).own_api]

    def _plan(self, turn: int, workloads: Sequence[str], nemeses: Sequence[str]) -> Plan:
        count = min(_CONCURRENT_WORKLOADS, len(workloads))
        return Plan(_rotate(workloads, turn)[:count], nemeses, self.segment, self.seed + turn, self.peace)


def _rotate(names: Sequence[str], places: int) -> Sequence[str]:
    places %= max(len(names), 1)
    return [*names[places:], *names[:places]]
