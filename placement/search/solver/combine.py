"""The candidates of one tree, computed on demand; trees with the same canonical form share one search.

Two isolated groups and a host with two devices have two candidates:

>>> from placement.search.solver.problem import Demand, ProviderFacts, Requirements, TreeProblem
>>> groups = Requirements((Demand("1", {"PGPU": 1}), Demand("2", {"PGPU": 1})), isolate=True)
>>> host = {10: ProviderFacts((10,)), 11: ProviderFacts((11, 10)), 12: ProviderFacts((12, 10))}
>>> for candidate in combine(TreeProblem(groups, ((11, 12), (11, 12)), host)):
...     print(candidate.mappings)
{'1': (11,), '2': (12,)}
{'1': (12,), '2': (11,)}

If both groups need the same device, no candidate remains:

>>> list(combine(TreeProblem(groups, ((11,), (11,)), host, tree=10), refused=print))
10 group_policy
[]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from placement.search.budget import Budget
from placement.search.query.query import UNSUFFIXED
from placement.search.solver.backtracking import Backtracking
from placement.search.solver.canonical_form import Assignment, CanonicalForm, canonical_form
from placement.search.solver.constraints import Isolation, NotOnlyShared, RequiredTraits, SummedAmounts
from placement.search.solver.problem import Candidate, Requirements, TreeProblem
from placement.search.solver.work_limit import WORK_LIMIT

#: A function of the id of a tree without candidates, and of the name of the constraint or work limit.
Refused = Callable[[int, str], object]


class Solutions:
    """The solutions of one canonical form, computed on demand and kept for several iterations."""

    def __init__(self, requirements: Requirements, form: CanonicalForm, budget: Budget) -> None:
        #: The name of the constraint or work limit, if the form has no solution; set by the first complete iteration.
        self.refusal: str | None = None
        self._known: list[Assignment] = []
        self._search = self._solve(requirements, form, budget)

    def __iter__(self) -> Iterator[Assignment]:
        number = 0
        while True:
            if number == len(self._known):
                solution = next(self._search, None)
                if solution is None:
                    return
                self._known.append(solution)
            yield self._known[number]
            number += 1

    def _solve(self, requirements: Requirements, form: CanonicalForm, budget: Budget) -> Iterator[Assignment]:
        if budget.fruitless_exhausted():
            self.refusal = WORK_LIMIT
            return
        search = Backtracking(requirements, form, budget)
        yield from search.solutions()
        if not self._known:
            self.refusal = search.refusal


class SolutionCache:
    """The solutions of a request, by canonical form."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self._known: dict[CanonicalForm, Solutions] = {}

    def solutions(self, requirements: Requirements, form: CanonicalForm) -> Solutions:
        """Return the solutions of the form.

        Args:
            requirements: The requirements of the request, the same in every call.
        """
        solutions = self._known.get(form)
        if solutions is None:
            self.budget.hold(form.nbytes)
            solutions = self._known[form] = Solutions(requirements, form, self.budget)
        return solutions


def combine(
    problem: TreeProblem, cache: SolutionCache | None = None, refused: Refused | None = None
) -> Iterator[Candidate]:
    """Return an iterator over the distinct candidates of the tree.

    Args:
        cache: The cache of the request, shared by all trees.
        refused: A callback for a tree without a candidate, called at most once.
    """
    first = problem.domains[0]
    if len(first) == 1 and problem.domains.count(first) == len(problem.domains):
        refusal = _single_provider_refusal(problem, first[0])
        if refusal is None:
            requirements = problem.requirements
            candidate = Candidate({first[0]: requirements.total}, dict.fromkeys(requirements.suffixes, first))
            return iter((candidate,))
        if refused is not None:
            refused(problem.tree, refusal)
        return iter(())
    return _combinations(problem, SolutionCache() if cache is None else cache, refused)


def _single_provider_refusal(problem: TreeProblem, provider: int) -> str | None:
    """Return the name of the constraint that prevents one provider from supplying all demands, or None."""
    requirements = problem.requirements
    if requirements.isolate and requirements.suffixed_count > 1:
        return Isolation.name
    if requirements.required or requirements.summed_classes or problem.skip_shared:
        facts = problem.facts[provider]
        if problem.skip_shared and facts.shares:
            return NotOnlyShared.name
        if any(any_of.isdisjoint(facts.traits) for any_of in requirements.required):
            return RequiredTraits.name
        for name in requirements.summed_classes:
            if requirements.total[name] > facts.available[name]:
                return SummedAmounts.name_for(name)
    return None


def _combinations(problem: TreeProblem, cache: SolutionCache, refused: Refused | None) -> Iterator[Candidate]:
    form, providers = canonical_form(problem, cache.budget)
    solutions = cache.solutions(problem.requirements, form)
    # The refusal is already known if another tree with this form was searched.
    if solutions.refusal is None:
        for assignment in solutions:
            yield _candidate(problem.requirements, [providers[number] for number in assignment])
    if solutions.refusal is not None and refused is not None:
        refused(problem.tree, solutions.refusal)


def _candidate(requirements: Requirements, assigned: list[int]) -> Candidate:
    """Return the candidate of an assignment: the provider of each demand, by position."""
    amounts: dict[int, Mapping[str, int]] = {}
    #: Sums for providers of several demands; copies, because the amounts of a demand are shared.
    sums: dict[int, dict[str, int]] = {}
    mappings: dict[str, tuple[int, ...]] = {}
    for (suffix, demanded), provider in zip(requirements.demands, assigned, strict=True):
        if suffix != UNSUFFIXED or suffix not in mappings:
            mappings[suffix] = (provider,)
        elif provider not in mappings[suffix]:
            mappings[suffix] += (provider,)
        if not demanded:
            continue
        if provider not in amounts:
            amounts[provider] = demanded
            continue
        if provider not in sums:
            amounts[provider] = sums[provider] = dict(amounts[provider])
        supplied = sums[provider]
        for name, amount in demanded.items():
            supplied[name] = supplied.get(name, 0) + amount
    return Candidate(amounts, mappings)
