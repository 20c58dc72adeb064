"""A number of candidates from all trees, each computed only when it is needed (docs: api-candidate-limits)."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, islice

from placement.search.budget import Budget, Exhausted
from placement.search.solver.combine import Refused, SolutionCache, combine
from placement.search.solver.constraints import NotOnlyShared
from placement.search.solver.problem import Candidate, TreeProblem

#: Operations to look a candidate up among those of other trees; bytes to remember it, and for each of its demands.
_LOOK_UP, _REMEMBERED, _DEMAND = 10, 600, 200

DEPTH_FIRST = "depth-first"
BREADTH_FIRST = "breadth-first"


def choose(
    problems: Iterable[TreeProblem],
    limit: int | None = None,
    strategy: str = BREADTH_FIRST,
    budget: Budget | None = None,
    refused: Refused | None = None,
) -> list[Candidate]:
    """Return the first ``limit`` candidates, each once; what was found before the budget was used up.

    Args:
        problems: One for each tree.
        limit: None for all.
        strategy: Depth-first returns all candidates of one tree, then those of the next.  Breadth-first returns one of
            each tree, then a second one of each, so that few candidates do not all come from one host.
        refused: Called once for each tree without a candidate, with its id and the name of the reason.
    """
    seen: set[Hashable] = set()
    cache = SolutionCache(budget)

    def each_tree() -> Iterator[Iterator[Candidate]]:
        for problem in problems:
            candidates = combine(problem, cache, refused)
            yield _without_seen(problem, candidates, seen, cache.budget, refused) if problem.may_repeat else candidates

    trees = each_tree()
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
    """Yield the candidates of the tree that no other tree has yielded."""
    demands = len(problem.requirements.demands)
    repeated = new = False
    for candidate in candidates:
        budget.spend(_LOOK_UP + demands * 2)
        # Other trees can use sharing providers only.
        if all(problem.facts[provider].shares for used in candidate.mappings.values() for provider in used):
            key = _identity(candidate)
            if key in seen:
                repeated = True
                continue
            budget.hold(_REMEMBERED + _DEMAND * demands)
            seen.add(key)
        new = True
        yield candidate
    if repeated and not new and refused is not None:
        refused(problem.tree, NotOnlyShared.name)


def _identity(candidate: Candidate) -> Hashable:
    return (
        frozenset((provider, *item) for provider, amounts in candidate.amounts.items() for item in amounts.items()),
        frozenset((suffix, frozenset(used)) for suffix, used in candidate.mappings.items()),
    )


def _round_robin(trees: Iterator[Iterator[Candidate]]) -> Iterator[Candidate]:
    """Yield one candidate of each tree in turn.  A tree is searched only when its first candidate is needed."""
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
