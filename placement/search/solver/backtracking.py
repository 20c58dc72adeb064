"""Backtracking search for the solutions of a canonical form.

The search is depth first over the variables.  Four techniques of constraint satisfaction reduce it:

- the variable with the smallest domain comes first (fail first), and constraints look ahead before each assignment
  (forward checking): Haralick and Elliott, "Increasing tree search efficiency for constraint satisfaction problems",
  Artificial Intelligence 14, 1980;
- states without a solution are recorded as no-goods: Dechter, "Enhancement schemes for constraint processing",
  Artificial Intelligence 41, 1990.  A state consists of the depth and the states of all constraints, which determine
  the remaining search;
- among interchangeable values that fail, only one is tried: Freuder, "Eliminating interchangeable values in constraint
  satisfaction problems", AAAI 1991.  All values that succeed are tried, because they yield different candidates;
- a work limit ends a search without solutions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from placement.search.budget import Budget
from placement.search.solver.canonical_form import Assignment, CanonicalForm
from placement.search.solver.constraints import Constraint, Variable, constraints_of
from placement.search.solver.problem import Demand, Requirements
from placement.search.solver.work_limit import WORK_LIMIT, WorkLimit

#: The refusal of a tree without a provider for one of the demands, as in narrowing.
NO_PROVIDER = "group"

#: Elements of a list per unit of work; trying a value is about one unit.
_PER_WORK = 20
#: Operations of an assignment, with its updates.
_ASSIGN = 4
#: Bytes of a number, and of a no-good without its numbers.
_NUMBER, _STATE = 8, 300


class Backtracking:
    """The search of one canonical form.

    Attributes:
        refusal: The reason for the lack of solutions: the name of the constraint that refused last at the greatest
            depth, ``WORK_LIMIT``, or ``NO_PROVIDER``.
    """

    def __init__(self, requirements: Requirements, form: CanonicalForm, budget: Budget) -> None:
        demands = requirements.demands
        budget.spend(len(demands) * (2 + len(requirements.summed_classes) // _PER_WORK))
        self._variables = _sort_variables(requirements, form)
        #: Work per value; most requests have few constraints, but the number of subtrees is up to the client.
        self._work_per_value = 1 + (len(requirements.same_subtrees) + len(requirements.summed_classes)) // 4
        # Without a wrong decision, each value is tried once or twice, and each variable compared with earlier ones.
        minimum = (1 + self._work_per_value) * sum(map(len, form.domains)) + len(demands) ** 2
        self._limit = WorkLimit(budget, minimum)
        self._limit.work += len(requirements.same_subtrees) * len(demands)
        self._constraints: list[Constraint] = list(constraints_of(requirements, form, self._variables, self._limit))
        #: The provider of each demand, by position, or -1.
        self._assignment = [-1] * len(demands)
        self._no_goods: set[Hashable] = set()
        self._interchangeability = _Interchangeability(form, self._limit)
        #: Numbers in a state, mostly the available amounts.
        self._state_size = (
            sum(map(len, form.available))
            + len(form.trees)
            + len(requirements.required)
            + 2 * len(requirements.same_subtrees)
        )
        self.refusal: str | None = None
        self._deepest = 0

    def solutions(self) -> Iterator[Assignment]:
        """Yield every solution once.

        Raises:
            Exhausted: The budget of the request is exhausted.
        """
        if self._feasible():
            for solution in self._extend(0):
                self._limit.restart()
                self._limit.budget.spend(len(solution) // 2)
                self._limit.budget.hold(_NUMBER * len(solution))
                yield solution
        self._limit.finish()

    def _feasible(self) -> bool:
        """Whether a solution may exist; otherwise set ``refusal``."""
        if not all(variable.domain for variable in self._variables):
            self.refusal = NO_PROVIDER
            return False
        for constraint in self._constraints:
            if not constraint.feasible():
                self.refusal = constraint.name
                return False
        return True

    def _extend(self, depth: int) -> Iterator[Assignment]:
        """Yield the solutions that extend the assignment of the variables before ``depth``."""
        if depth == len(self._variables):
            yield tuple(self._assignment)
            return
        if self._no_goods and self._state(depth) in self._no_goods:
            return
        solved = False
        failed: set[Hashable] = set()
        for provider in self._variables[depth].domain:
            if self._limit.exceeded():
                self.refusal = WORK_LIMIT
                return
            self._limit.work += self._work_per_value
            if (failed and self._class(provider) in failed) or not self._allows(depth, provider):
                continue
            extended = False
            self._limit.budget.spend(_ASSIGN * self._work_per_value)
            self._assign(depth, provider)
            for solution in self._extend(depth + 1):
                extended = True
                yield solution
            self._unassign(depth, provider)
            solved |= extended
            if not extended and (interchangeable := self._class(provider)) is not None:
                failed.add(interchangeable)
        if not solved and self._limit.budget.try_hold(_STATE + _NUMBER * self._state_size):
            self._no_goods.add(self._state(depth))

    def _allows(self, depth: int, provider: int) -> bool:
        for constraint in self._constraints:
            if not constraint.allows(depth, provider):
                if depth >= self._deepest:
                    self._deepest = depth
                    self.refusal = constraint.name
                return False
        return True

    def _assign(self, depth: int, provider: int) -> None:
        self._assignment[self._variables[depth].position] = provider
        for constraint in self._constraints:
            constraint.assign(depth, provider)

    def _unassign(self, depth: int, provider: int) -> None:
        self._assignment[self._variables[depth].position] = -1
        for constraint in self._constraints:
            constraint.unassign(depth, provider)

    def _state(self, depth: int) -> Hashable:
        self._limit.work += self._state_size // _PER_WORK
        return depth, tuple(constraint.state() for constraint in self._constraints)

    def _class(self, provider: int) -> Hashable:
        """Return the class of providers currently interchangeable with this one; None if it contains only this one."""
        return None if provider in self._assignment else self._interchangeability.class_of(provider)


class _Interchangeability:
    """Classes of providers with equal facts and in the same domains.

    Two providers of a class are interchangeable while neither is assigned: swapping them preserves every constraint.
    """

    def __init__(self, form: CanonicalForm, limit: WorkLimit) -> None:
        self._form = form
        self._limit = limit
        distinct = {id(domain): domain for domain in form.domains}
        self._domains = [frozenset(domain) for domain in distinct.values()]
        self._parents = frozenset(form.parents)
        self._classes: dict[int, Hashable] = {}

    def class_of(self, provider: int) -> Hashable:
        """Return the class of the provider; None if it contains only this one."""
        if provider not in self._classes:
            self._classes[provider] = self._find(provider)
        return self._classes[provider]

    def _find(self, provider: int) -> Hashable:
        form = self._form
        if provider in self._parents:
            # A parent differs from other providers by its descendants.
            return None
        self._limit.work += len(self._domains) // _PER_WORK
        facts = (form.parents, form.trees, form.traits, form.shares, *form.available)
        return (
            tuple(values[provider] if values else None for values in facts),
            tuple(provider in domain for domain in self._domains),
        )


def _sort_variables(requirements: Requirements, form: CanonicalForm) -> list[Variable]:
    """Return the variables, sorted by the size of the domain; of equal sizes, large demands come first."""
    demands = enumerate(zip(requirements.demands, form.domains, strict=True))
    variables = [Variable(demand, domain, position) for position, (demand, domain) in demands]
    return sorted(variables, key=lambda variable: (len(variable.domain), -_share(variable.demand, requirements)))


def _share(demand: Demand, requirements: Requirements) -> float:
    """Return the demand's share of the total amounts, summed over the summed classes."""
    classes = requirements.summed_classes
    return sum(demand.amounts[name] / requirements.total[name] for name in classes if name in demand.amounts)
