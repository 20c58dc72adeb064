"""The choice of candidates from all trees, computed on demand (docs: api-candidate-limits)."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, islice

from placement.search.budget import Budget, Exhausted
from placement.search.solver.combine import Refused, SolutionCache, combine
from placement.search.solver.constraints import NotOnlyShared
from placement.search.solver.problem import Candidate, TreeProblem

#: Operations to look up a candidate in the set of seen candidates; bytes of a candidate in it, and per demand.
_LOOKUP, _CANDIDATE, _DEMAND = 10, 600, 200

DEPTH_FIRST = "depth-first"
BREADTH_FIRST = "breadth-first"


def choose(
    problems: Iterable[TreeProblem],
    limit: int | None = None,
    strategy: str = BREADTH_FIRST,
    budget: Budget | None = None,
    refused: Refused | None = None,
) -> list[Candidate]:
    """Return the first ``limit`` distinct candidates, or fewer if the budget is exhausted.

    Args:
        problems: The problems of the trees.
        limit: Maximum number of candidates; None for all.
        strategy: ``DEPTH_FIRST`` returns all candidates of the first tree, then all of the second.  ``BREADTH_FIRST``
            returns one of each tree, then a second one of each, so that even a few candidates come from different
            hosts.
        refused: A callback for each tree without a candidate, with its id and the name of the constraint.
    """
    seen: set[Hashable] = set()
    cache = SolutionCache(budget)

    def search_trees() -> Iterator[Iterator[Candidate]]:
        for problem in problems:
            candidates = combine(problem, cache, refused)
            yield _without_seen(problem, candidates, seen, cache.budget, refused) if problem.may_repeat else candidates

    trees = search_trees()
    in_order = chain.from_iterable(trees) if strategy == DEPTH_FIRST else _round_robin(trees)
    chosen: list[Candidate] = []
    with contextlib.suppress(Exhausted):
        chosen.extend(islice(in_order, limit))
    return chosen


def _without_seen(
    problem: TreeProblem,
    candidates: Iterator[Candidate],
    seen: set[Hashable],
    budget: Budget,
    refused: Refused | None,
) -> Iterator[Candidate]:
    """Yield the candidates of a tree that earlier trees have not yielded."""
    demands = len(problem.requirements.demands)
    repeated = new = False
    for candidate in candidates:
        budget.spend(_LOOKUP + demands * 2)
        # Another tree can only repeat a candidate whose providers all share.
        if all(problem.facts[provider].shares for providers in candidate.mappings.values() for provider in providers):
            key = _identity(candidate)
            if key in seen:
                repeated = True
                continue
            budget.hold(_CANDIDATE + _DEMAND * demands)
            seen.add(key)
        new = True
        yield candidate
    if repeated and not new and refused is not None:
        refused(problem.tree, NotOnlyShared.name)


def _identity(candidate: Candidate) -> Hashable:
    return (
        frozenset((provider, *item) for provider, amounts in candidate.amounts.items() for item in amounts.items()),
        frozenset((suffix, frozenset(providers)) for suffix, providers in candidate.mappings.items()),
    )


def _round_robin(trees: Iterator[Iterator[Candidate]]) -> Iterator[Candidate]:
    """Yield one candidate of each tree in turn; a tree is searched only when its first candidate is due."""
    begun: deque[Iterator[Candidate]] = deque()
    for tree in trees:
        for candidate in tree:
            yield candidate
            begun.append(tree)
            break
    while begun:
        tree = begun.popleft()
        for candidate in tree:
            yield candidate
            begun.append(tree)
            break
