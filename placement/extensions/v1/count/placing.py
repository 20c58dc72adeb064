"""Placing candidates of the solver in trees, one after another, until there is none.

Another order, or other candidates, may place more: the number is a lower bound.
"""

from __future__ import annotations

from placement.extensions.v1.count.supply import Supply
from placement.search.budget import Budget
from placement.search.solver.combine import SolutionCache, combine
from placement.search.solver.problem import Candidate, Requirements, TreeProblem

#: Operations for each provider that can supply a demand.
_PROVIDER = 2


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
    """Places a request in trees."""

    def __init__(self, requirements: Requirements, supply: Supply, budget: Budget) -> None:
        self._requirements = requirements
        self._supply = supply
        self._budget = budget
        self._cache = SolutionCache(budget)

    def place(self, problem: TreeProblem, taken: Taken, most: int) -> int:
        """Place candidates until there is none, each as often as it fits; return how many.

        Args:
            problem: A tree.
            taken: What was taken before; what is placed is added.
            most: Where to stop.

        Raises:
            Exhausted: The budget is used up.
        """
        count = 0
        while count < most:
            candidate = next(combine(self._current(problem, taken), self._cache), None)
            if candidate is None:
                break
            times = min(
                self._free(provider, name, taken) // amount
                for provider, amounts in candidate.amounts.items()
                for name, amount in amounts.items()
            )
            times = min(times, most - count)
            taken.add(candidate, times)
            count += times
        return count

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
