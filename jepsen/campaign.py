"""Run after run on one cluster until a time is over: every nemesis in turn, beside changing workloads."""

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

#: How many workloads run at the same time.
_TOGETHER = 2


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is to be done.

    Attributes:
        seconds: After which no further run begins; there is at least one.
        seed: Of the first run; each further one has the next.
        segment: Seconds of one run.  Each has consumers of its own and is checked by itself, so that memory and the
            time of the checks stay small.
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
        """Yield what came of each run; a cluster that did not recover is replaced by a new one."""
        end, turn, harms, over = time.monotonic() + self.seconds, 0, 0, False
        while not over:
            with catalogue.cluster(self.cluster)() as cluster:
                workloads, nemeses = self._applying_workloads(cluster), self._applying(cluster)
                recovered = True
                while recovered and not over:
                    result = self._run(cluster, self._plan(turn, workloads, _rotated(nemeses, harms)))
                    turn += 1
                    harms += len(result.history.events)
                    recovered, over = result.recovered, time.monotonic() > end
                    yield result

    def _run(self, cluster: Cluster, plan: Plan) -> Result:
        try:
            return run(cluster, plan)
        except Exception as error:
            # Of the harness, or of a cluster that does not start again: the next run has another one.
            traceback.print_exc()
            description = {"cluster": self.cluster, "workloads": [*plan.workloads], "seed": plan.seed}
            return Result(History(description, [], []), [Violation(RECOVERS, f"the run failed: {error!r}")], None)

    def _applying(self, cluster: Cluster) -> Sequence[str]:
        return [name for name in self.nemeses if catalogue.nemesis(name)().applies_to(cluster)]

    def _applying_workloads(self, cluster: Cluster) -> Sequence[str]:
        return [name for name in self.workloads if cluster.shows_state or not catalogue.workload(name).own_api]

    def _plan(self, turn: int, workloads: Sequence[str], nemeses: Sequence[str]) -> Plan:
        together = min(_TOGETHER, len(workloads))
        return Plan(_rotated(workloads, turn)[:together], nemeses, self.segment, self.seed + turn, self.peace)


def _rotated(names: Sequence[str], places: int) -> Sequence[str]:
    places %= max(len(names), 1)
    return [*names[places:], *names[:places]]
