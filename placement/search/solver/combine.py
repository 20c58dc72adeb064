"""The candidates of one tree, found on demand; trees with the same canonical form share one search.

Two isolated groups on the two devices of a host have two candidates:

>>> from placement.search.solver.problem import Demand, ProviderFacts, Requirements, TreeProblem
>>> groups = Requirements((Demand("1", {"PGPU": 1}), Demand("2", {"PGPU": 1})), isolate=True)
>>> host = {10: ProviderFacts((10,)), 11: ProviderFacts((11, 10)), 12: ProviderFacts((12, 10))}
>>> for candidate in combine(TreeProblem(groups, ((11, 12), (11, 12)), host)):
...     print(candidate.mappings)
{'1': (11,), '2': (12,)}
{'1': (12,), '2': (11,)}

Where only one of the devices will do, there is none:

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

#: Called with the id of a tree without candidates and the reason: the name of a constraint, or of the work limit.
Refused = Callable[[int, str], object]


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


def combine(
    problem: TreeProblem, cache: SolutionCache | None = None, refused: Refused | None = None
) -> Iterator[Candidate]:
    """Return an iterator over the candidates of the tree, each once.

    Args:
        cache: Shared by all trees of a request.
        refused: Called once if the tree turns out to have no candidate.
    """
    first = problem.domains[0]
    if len(first) == 1 and problem.domains.count(first) == len(problem.domains):
        refusal = _refusal_of_one(problem, first[0])
        if refusal is None:
            requirements = problem.requirements
            candidate = Candidate({first[0]: requirements.total}, dict.fromkeys(requirements.suffixes, first))
            return iter((candidate,))
        if refused is not None:
            refused(problem.tree, refusal)
        return iter(())
    return _combinations(problem, SolutionCache() if cache is None else cache, refused)


def _refusal_of_one(problem: TreeProblem, provider: int) -> str | None:
    """Return the name of the constraint that keeps the provider from supplying everything, or None."""
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
    # A refusal is known already if another tree with this form was searched.
    if solutions.refusal is None:
        for assignment in solutions:
            yield _candidate(problem.requirements, [providers[number] for number in assignment])
    if solutions.refusal is not None and refused is not None:
        refused(problem.tree, solutions.refusal)


def _candidate(requirements: Requirements, assigned: list[int]) -> Candidate:
    """Return the candidate in which each demand is supplied by the provider at its position."""
    amounts: dict[int, Mapping[str, int]] = {}
    #: The amounts of providers that supply several demands: copies, since those of a demand are not ours to change.
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
