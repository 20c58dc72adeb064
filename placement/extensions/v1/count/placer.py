"""Greedy placement of solver candidates, one after another, until no candidate fits.

Another order, or other candidates, may place more, so the result is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable

from placement.extensions.v1.count.inputs import CountInputs
from placement.extensions.v1.overlay import UsageOverlay
from placement.search.narrow.tree_problems import TreeProblems
from placement.search.solver.combine import SolutionCache, combine
from placement.search.solver.problem import Candidate, TreeProblem

#: Operations per provider that can supply a demand.
_OPERATIONS_PER_PROVIDER = 2


class Placer:
    """A placer of one request; each call of ``place`` starts from the usage in the snapshot."""

    def __init__(self, inputs: CountInputs) -> None:
        self._inputs = inputs
        self._problems = TreeProblems(inputs.narrowed, None, inputs.budget)
        self._cache = SolutionCache(inputs.budget)

    def place(self, roots: Iterable[int], per_tree: int, max_total: int) -> int:
        """Place candidates in the trees one after another, each as often as it fits; return their number.

        Args:
            per_tree: Maximum number of placements in one tree.
            max_total: Maximum number of placements in all trees.

        Raises:
            Exhausted: The budget is exhausted.
        """
        overlay, total = UsageOverlay(self._inputs.snapshot), 0
        for root in roots:
            problem = self._problems.complete_problem(root)
            remaining = min(per_tree, max_total - total)
            while remaining and (candidate := self._candidate(problem, overlay)):
                times = min(remaining, *(overlay.times(slot, amounts) for slot, amounts in candidate.amounts.items()))
                overlay.take(candidate, times)
                remaining -= times
                total += times
            if total == max_total:
                break
        return total

    def _candidate(self, problem: TreeProblem, overlay: UsageOverlay) -> Candidate | None:
        """Return a candidate for one more consumer; None if nothing fits."""
        self._inputs.budget.spend(_OPERATIONS_PER_PROVIDER * sum(map(len, problem.domains)))
        overlay.begin_consumer({})
        remaining = overlay.reduced_problem(problem)
        return None if remaining is None else next(combine(remaining, self._cache), None)
