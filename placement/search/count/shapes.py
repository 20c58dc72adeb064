"""Trees that are equal in all that a query asks, but for what is free: they have the same patterns."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index.slots import Slots
from placement.search.budget import Budget
from placement.search.count.supply import Supply, Whole
from placement.search.narrow.narrowing import Narrowed
from placement.search.narrow.tree_problems import TreeProblems
from placement.search.solver.canonical_form import canonical_form
from placement.search.solver.problem import ProviderFacts, Requirements, TreeProblem

#: Operations to compare a tree with others, and for each provider that can supply a demand.
_TREE, _PROVIDER = 20, 2


class Shape(NamedTuple):
    """Trees of one shape.

    Attributes:
        form: What the trees have in common.
        problem: That of the first tree if nothing was used.
        roots: Their roots.
        providers: By tree, the providers that can supply demands, those of all trees in the same order.
        places: What is free matters of these: an index of ``providers``, and a class.
    """

    form: Hashable
    problem: TreeProblem
    roots: Slots
    providers: npt.NDArray[np.intp]
    places: tuple[tuple[int, str], ...]


class Shapes:
    """Makes the problems of trees, and groups trees by shape."""

    def __init__(self, narrowed: Narrowed, requirements: Requirements, supply: Supply, budget: Budget) -> None:
        self._requirements = requirements
        self._supply = supply
        self._budget = budget
        self._problems = TreeProblems(narrowed, None, budget)
        self._facts: dict[int, ProviderFacts] = {}

    def problem(self, root: int) -> TreeProblem:
        """Return the problem of one tree if nothing was used: only the largest amount of one consumer is a limit.

        Raises:
            Exhausted: The budget is used up.
        """
        problem = self._problems.alone(root)
        self._budget.spend(_TREE + _PROVIDER * sum(map(len, problem.domains)))
        if not self._requirements.summed_classes:
            return problem
        for domain in problem.domains:
            for provider in domain:
                if provider not in self._facts:
                    largest = {name: self._supply.largest[name].item(provider) for name in self._requirements.total}
                    self._facts[provider] = problem.facts[provider]._replace(available=largest)
        return problem._replace(facts=self._facts)

    def of(self, roots: Slots) -> Iterator[Shape]:
        """Yield the trees by shape.

        Raises:
            Exhausted: The budget is used up.
        """
        first: dict[Hashable, TreeProblem] = {}
        trees: dict[Hashable, list[tuple[int, tuple[int, ...]]]] = {}
        for root in roots.tolist():
            problem = self.problem(root)
            form, providers = canonical_form(problem, self._budget)
            if form not in trees:
                self._budget.hold(form.nbytes)
                first[form], trees[form] = problem, []
            trees[form].append((root, providers))
        for key, alike in trees.items():
            yield Shape(
                key,
                first[key],
                np.array([root for root, _ in alike], np.intp),
                np.array([providers for _, providers in alike], np.intp),
                self._places(first[key], alike[0][1]),
            )

    def _places(self, problem: TreeProblem, providers: tuple[int, ...]) -> tuple[tuple[int, str], ...]:
        numbers = {provider: number for number, provider in enumerate(providers)}
        demands = zip(self._requirements.demands, problem.domains, strict=True)
        places = {(numbers[one], name): None for demand, domain in demands for one in domain for name in demand.amounts}
        return tuple(places)

    def free(self, shape: Shape) -> Whole:
        """Return what is free, by tree and place."""
        columns = [self._supply.free[name][shape.providers[:, number]] for number, name in shape.places]
        return np.stack(columns, axis=1)
