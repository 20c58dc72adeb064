"""The count of trees by placing candidates of the solver, one after another, until there is none.

Another order, or other candidates, may place more: the number is a lower bound.  It is compared with a bound from above
(``closed.bounds``), and is exact where they meet.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from placement.search.budget import Budget
from placement.search.count.closed import bounds
from placement.search.count.supply import Kind, Supply
from placement.search.narrow.narrowing import Narrowed
from placement.search.narrow.tree_problems import TreeProblems
from placement.search.solver.cache import SolutionCache
from placement.search.solver.canonical_form import canonical_form
from placement.search.solver.combine import combine
from placement.search.solver.constraints import SummedAmounts
from placement.search.solver.problem import Candidate, Requirements, TreeProblem
from placement.search.solver.work_limit import WORK_LIMIT

#: Operations to compare a tree with those counted before, and for each provider that can supply a demand.
_TREE, _PROVIDER = 20, 2


class Placed(NamedTuple):
    """How often a request was placed in one tree, and why not once more."""

    times: int
    #: A number that no other way to place exceeds.
    bound: int
    #: The rule that ended it, in the words of refusals.
    rule: str


class Taken(dict[tuple[int, str], int]):
    """What placements have taken, by provider and class."""

    def __missing__(self, key: tuple[int, str]) -> int:
        return 0

    def add(self, candidate: Candidate, times: int) -> None:
        """Count a candidate, so many times."""
        for provider, amounts in candidate.amounts.items():
            for name, amount in amounts.items():
                self[provider, name] += amount * times


class Placing:
    """Places a request in the trees of one narrowed query."""

    def __init__(
        self, narrowed: Narrowed, requirements: Requirements, kinds: Sequence[Kind], supply: Supply, budget: Budget
    ) -> None:
        self._requirements = requirements
        self._kinds = kinds
        self._supply = supply
        self._budget = budget
        self._problems = TreeProblems(narrowed, None, budget)
        #: For each kind, the position of its first demand.
        self._positions = [narrowed.eligible.index(kind.eligible) for kind in kinds]
        self._cache = SolutionCache(budget)
        #: The rule that refused last.
        self._refusal = ""
        #: Trees that are alike but for the ids of their providers have the same count.
        self._known: dict[Hashable, Placed] = {}

    def alone(self, root: int) -> Placed:
        """Return the count of one tree, if nothing is placed elsewhere.

        Raises:
            Exhausted: The budget is used up.
        """
        problem = self._problem(root)
        form, providers = canonical_form(problem, self._budget)
        key = form, tuple(tuple(free[list(providers)].tolist()) for free in self._supply.free.values())
        if key not in self._known:
            self._budget.hold(form.nbytes * 2)
            count, rule = self._place(problem, Taken())
            none = not count and rule != WORK_LIMIT  # the solver has shown it
            self._known[key] = Placed(count, 0 if none else self._bound(problem), rule)
        return self._known[key]

    def beside(self, root: int, taken: Taken) -> int:
        """Return how often the request fits into the tree beside what was taken before, and take that.

        Raises:
            Exhausted: The budget is used up.
        """
        return self._place(self._problem(root), taken)[0]

    def _problem(self, root: int) -> TreeProblem:
        problem = self._problems.alone(root)
        self._budget.spend(_TREE + _PROVIDER * sum(map(len, problem.domains)))
        return problem

    def _bound(self, problem: TreeProblem) -> int:
        domains = [np.array(problem.domains[position], np.intp) for position in self._positions]
        inside = [(domain, np.zeros(len(domain), np.intp)) for domain in domains]
        return int(bounds(self._requirements, self._kinds, self._supply, inside, 1).counts[0])

    def _place(self, problem: TreeProblem, taken: Taken) -> tuple[int, str]:
        """Place candidates until there is none, each as often as it fits."""
        count = 0
        while True:
            current = self._current(problem, taken)
            candidate = next(combine(current, self._cache, self._refused), None)
            if candidate is None:
                return count, self._exhausted(problem, current, taken) or self._refusal
            times = min(
                self._free(provider, name, taken) // amount
                for provider, amounts in candidate.amounts.items()
                for name, amount in amounts.items()
            )
            taken.add(candidate, times)
            count += times

    def _free(self, provider: int, name: str, taken: Taken) -> int:
        return self._supply.free[name].item(provider) - taken[provider, name]

    def _current(self, problem: TreeProblem, taken: Taken) -> TreeProblem:
        """Return the problem with the providers that still have room, and with what they still have."""
        self._budget.spend(_PROVIDER * sum(map(len, problem.domains)))
        fitting: dict[int, tuple[int, ...]] = {}
        for demand, domain in zip(self._requirements.demands, problem.domains, strict=True):
            # Equal demands keep their one domain object; the canonical form relies on it.
            if id(domain) not in fitting:
                fitting[id(domain)] = tuple(
                    provider
                    for provider in domain
                    if all(self._free(provider, name, taken) >= amount for name, amount in demand.amounts.items())
                )
        domains = tuple(fitting[id(domain)] for domain in problem.domains)
        facts = problem.facts
        if summed := self._requirements.summed_classes:
            facts = {
                provider: problem.facts[provider]._replace(
                    available={
                        name: min(self._free(provider, name, taken), self._supply.largest[name].item(provider))
                        for name in summed
                    }
                )
                for domain in fitting.values()
                for provider in domain
            }
        return problem._replace(domains=domains, facts=facts)

    def _refused(self, _tree: int, rule: str) -> None:
        self._refusal = rule

    def _exhausted(self, problem: TreeProblem, current: TreeProblem, taken: Taken) -> str | None:
        """Return the class of which no provider has enough for one of the demands; None if there is none."""
        demands = zip(self._requirements.demands, problem.domains, current.domains, strict=True)
        for amounts, domain in [(demand.amounts, domain) for demand, domain, fitting in demands if not fitting]:
            for name, amount in amounts.items():
                if all(self._free(provider, name, taken) < amount for provider in domain):
                    return SummedAmounts.name_for(name)
        return None
