"""The candidates of one problem, as late as they are asked for.

>>> from placement.search.solver.problem import Pick, Plan, Problem, Supplier
>>> plan = Plan((Pick("1", {"PGPU": 1}), Pick("2", {"PGPU": 1})), isolate=True)
>>> host = {10: Supplier((10,)), 11: Supplier((11, 10)), 12: Supplier((12, 10))}
>>> for candidate in combine(Problem(plan, ((11, 12), (11, 12)), host)):
...     print(candidate.mappings)
{'1': (11,), '2': (12,)}
{'1': (12,), '2': (11,)}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placement.search.query.query import UNSUFFIXED
from placement.search.solver.backtracking import solve
from placement.search.solver.canonical import Known, Memory, shape_of
from placement.search.solver.effort import Patience
from placement.search.solver.problem import Candidate, Plan, Problem


def combine(problem: Problem, memory: Memory | None = None, patience: Patience | None = None) -> Iterator[Candidate]:
    """Every candidate of the tree, once each, one by one.

    :param memory: what was found for other problems of the same plan.
    :param patience: that of the search which these problems are of.
    """
    first = problem.options[0]
    if len(first) == 1 and problem.options.count(first) == len(problem.options):
        candidate = _alone(problem, first[0])
        return iter(()) if candidate is None else iter((candidate,))
    return _solved(problem, {} if memory is None else memory, Patience() if patience is None else patience)


def _alone(problem: Problem, provider: int) -> Candidate | None:
    """The one candidate there may be when one provider has to serve everything."""
    plan = problem.plan
    if plan.isolate and plan.suffixed > 1:
        return None
    if plan.required or plan.contended or problem.repeated:
        supplier = problem.suppliers[provider]
        if problem.repeated and supplier.shares:
            return None
        if any(any_of.isdisjoint(supplier.traits) for any_of in plan.required):
            return None
        if any(plan.whole[name] > supplier.room[name] for name in plan.contended):
            return None
    return Candidate({provider: plan.whole}, dict.fromkeys(plan.suffixes, (provider,)))


def _solved(problem: Problem, memory: Memory, patience: Patience) -> Iterator[Candidate]:
    shape, providers = shape_of(problem, patience.budget)
    known = memory.get(shape)
    if known is None:
        patience.budget.hold(shape.nbytes)
        known = memory[shape] = Known(solve(problem.plan, shape, patience))
    for assignment in known:
        yield _candidate(problem.plan, [providers[number] for number in assignment])


def _candidate(plan: Plan, chosen: list[int]) -> Candidate:
    amounts: dict[int, Mapping[str, int]] = {}
    #: Those of the amounts that are nobody else's.
    sums: dict[int, dict[str, int]] = {}
    mappings: dict[str, tuple[int, ...]] = {}
    for (suffix, asked), provider in zip(plan.picks, chosen, strict=True):
        if suffix != UNSUFFIXED or suffix not in mappings:
            mappings[suffix] = (provider,)
        elif provider not in mappings[suffix]:
            mappings[suffix] += (provider,)
        if not asked:
            continue
        if provider not in amounts:
            amounts[provider] = asked
            continue
        if provider not in sums:
            amounts[provider] = sums[provider] = dict(amounts[provider])
        given = sums[provider]
        for name, amount in asked.items():
            given[name] = given.get(name, 0) + amount
    return Candidate(amounts, mappings)
