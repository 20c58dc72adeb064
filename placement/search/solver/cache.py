"""A cache of solutions: trees with the same canonical form share one search."""

from __future__ import annotations

from collections.abc import Iterator

from placement.search.budget import Budget
from placement.search.solver.backtracking import Backtracking
from placement.search.solver.canonical_form import Assignment, CanonicalForm
from placement.search.solver.problem import Requirements
from placement.search.solver.work_limit import WORK_LIMIT


class Solutions:
    """The solutions of one canonical form.  Found on demand and kept, so that many readers can iterate over them."""

    def __init__(self, requirements: Requirements, form: CanonicalForm, budget: Budget) -> None:
        #: Why there is no solution: the name of a constraint, or the work limit.  Known after an iteration to the end;
        #: None if there are solutions.
        self.refusal: str | None = None
        self._found: list[Assignment] = []
        self._more = self._search(requirements, form, budget)

    def __iter__(self) -> Iterator[Assignment]:
        number = 0
        while True:
            if number == len(self._found):
                found = next(self._more, None)
                if found is None:
                    return
                self._found.append(found)
            yield self._found[number]
            number += 1

    def _search(self, requirements: Requirements, form: CanonicalForm, budget: Budget) -> Iterator[Assignment]:
        if budget.fruitless_exhausted():
            self.refusal = WORK_LIMIT
            return
        search = Backtracking(requirements, form, budget)
        yield from search.solutions()
        if not self._found:
            self.refusal = search.refusal


class SolutionCache:
    """The solutions of every canonical form that one request has met."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self._known: dict[CanonicalForm, Solutions] = {}

    def solutions(self, requirements: Requirements, form: CanonicalForm) -> Solutions:
        """Return the solutions of the form.

        Args:
            requirements: Those of the request, the same in every call.
        """
        known = self._known.get(form)
        if known is None:
            self.budget.hold(form.nbytes)
            known = self._known[form] = Solutions(requirements, form, self.budget)
        return known
