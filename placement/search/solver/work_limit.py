"""When to give up on a tree.

Whether unequal groups fit into the providers of a tree together is bin packing: often only trial shows it, and each
group more doubles the work.  A search that finds solutions goes on.  One that does not gives up on the tree, goes on to
the next, and ends when the request has no fruitless work left (ADR 10; ``search/budget.py`` describes all bounds).
"""

from __future__ import annotations

from placement.search.budget import Budget

#: The name under which a tree that was given up is reported.
WORK_LIMIT = "work limit"


class WorkLimit:
    """The limit of one tree, in operations from one solution to the next.

    Attributes:
        work: Operations since the last solution.  Code that works for the tree adds to it.
        budget: That of the request.  It is charged for ``work`` when the limit is checked.
    """

    __slots__ = ("_allowance", "_charged", "_minimum", "budget", "work")

    def __init__(self, budget: Budget, minimum: int) -> None:
        """Begin to count.

        Args:
            budget: That of the request.
            minimum: Operations that a search without any wrong decision takes; they do not count as fruitless.
        """
        self.budget = budget
        self._minimum = minimum
        self._allowance = budget.allowance(minimum)
        self.work = 0
        #: The part of ``work`` that the budget was charged for.
        self._charged = 0

    def exceeded(self) -> bool:
        """Whether to give up on the tree; records the shortage.

        Raises:
            Exhausted: The budget of the request is used up.
        """
        self._charge()
        if self.work < self._allowance:
            return False
        self.budget.fall_short("operations")
        return True

    def restart(self) -> None:
        """Begin to count anew after a solution."""
        self._charge()
        self.budget.count_fruitless(self.work - self._minimum)
        self.work = self._charged = 0
        self._allowance = self.budget.allowance(self._minimum)

    def finish(self) -> None:
        """Count the work since the last solution as fruitless: there is no other."""
        self._charge()
        self.budget.count_fruitless(self.work)

    def _charge(self) -> None:
        self.budget.spend(self.work - self._charged)
        self._charged = self.work
