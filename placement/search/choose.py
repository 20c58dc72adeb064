"""So many candidates, from as many trees as there may be, made no earlier than they are asked for."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, islice

from placement.search.budget import Budget, Exhausted
from placement.search.solver.canonical import Memory
from placement.search.solver.combine import combine
from placement.search.solver.effort import Patience
from placement.search.solver.problem import Candidate, Problem

#: Looking at a candidate that may have been found before takes so many operations; to know it again takes so many
#: bytes, and so many for each pick.
_MET, _KEY, _PART = 10, 600, 200

DEPTH_FIRST = "depth-first"
BREADTH_FIRST = "breadth-first"


def choose(
    problems: Iterable[Problem],
    limit: int | None = None,
    strategy: str = BREADTH_FIRST,
    patience: Patience | None = None,
) -> list[Candidate]:
    """The first ``limit`` candidates, or all, each once.

    Depth-first gives all candidates of one tree, then those of the next; breadth-first one of each tree, then a second
    one of each, so that few candidates do not all come from one host.  What was found until the budget was used up is
    what there is.
    """
    seen: set[Hashable] = set()
    memory: Memory = {}
    patience = Patience() if patience is None else patience
    trees = (_unseen(problem, combine(problem, memory, patience), seen, patience.budget) for problem in problems)
    in_order = chain.from_iterable(trees) if strategy == DEPTH_FIRST else _round_robin(trees)
    chosen: list[Candidate] = []
    with contextlib.suppress(Exhausted):
        chosen.extend(islice(in_order, limit))
    return chosen


def _unseen(
    problem: Problem, candidates: Iterator[Candidate], seen: set[Hashable], budget: Budget
) -> Iterator[Candidate]:
    """Those that no other tree came to before."""
    return _first_time(problem, candidates, seen, budget) if problem.repeats else candidates


def _first_time(
    problem: Problem, candidates: Iterator[Candidate], seen: set[Hashable], budget: Budget
) -> Iterator[Candidate]:
    for candidate in candidates:
        picks = len(problem.plan.picks)
        budget.spend(_MET + picks * 2)
        if all(problem.suppliers[provider].shares for places in candidate.mappings.values() for provider in places):
            # Only those who share can be met again elsewhere.
            key = _identity(candidate)
            if key in seen:
                continue
            budget.hold(_KEY + _PART * picks)
            seen.add(key)
        yield candidate


def _identity(candidate: Candidate) -> Hashable:
    return (
        frozenset((provider, *item) for provider, given in candidate.amounts.items() for item in given.items()),
        frozenset((suffix, frozenset(places)) for suffix, places in candidate.mappings.items()),
    )


def _round_robin(trees: Iterator[Iterator[Candidate]]) -> Iterator[Candidate]:
    """One candidate of each tree in turn, until there are no more.  Trees are entered as late as can be."""
    entered: deque[Iterator[Candidate]] = deque()
    for tree in trees:
        for candidate in tree:
            yield candidate
            entered.append(tree)
            break
    while entered:
        tree = entered.popleft()
        for candidate in tree:
            yield candidate
            entered.append(tree)
            break
