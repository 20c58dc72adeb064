"""The bound on the work for a tree without solutions.

Fitting unequal groups into the providers of a tree is bin packing, where each additional group may double the work.  A
search continues while it finds solutions.  If it finds none, it abandons the tree and continues with the next one,
until the request has no fruitless work left (ADR 10; ``search/budget.py`` describes all bounds).
"""

from __future__ import annotations

from placement.search.budget import Budget

#: The name in refusals of an abandoned tree.
WORK_LIMIT = "work limit"


class WorkLimit:
    """The limit of one tree, in operations from one solution to the next.

    Attributes:
        work: Operations since the last solution, counted by the code that works on the tree.
        budget: The budget of the request, which is charged for ``work`` when the limit is checked.
    """

    __slots__ = ("_allowance", "_charged", "_minimum", "budget", "work")

    def __init__(self, budget: Budget, minimum: int) -> None:
        """Start counting.

        Args:
            minimum: Operations of a search without wrong decisions, which do not count as fruitless.
        """
        self.budget = budget
        self._minimum = minimum
        self._allowance = budget.allowance(minimum)
        self.work = 0
        #: The part of ``work`` already charged to the budget.
        self._charged = 0

    def exceeded(self) -> bool:
        """Whether to abandon the tree; if so, record the shortage.

        Raises:
            Exhausted: The budget of the request is exhausted.
        """
        self._charge()
        if self.work < self._allowance:
            return False
        self.budget.fall_short("operations")
        return True

    def restart(self) -> None:
        """Restart counting after a solution."""
        self._charge()
        self.budget.count_fruitless(self.work - self._minimum)
        self.work = self._charged = 0
        self._allowance = self.budget.allowance(self._minimum)

    def finish(self) -> None:
        """Count the work since the last solution as fruitless, because no further solution exists."""
        self._charge()
        self.budget.count_fruitless(self.work)

    def _charge(self) -> None:
        self.budget.spend(self.work - self._charged)
        self._charged = self.work
