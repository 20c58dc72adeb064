"""The whole search, from a request to the candidates that are chosen."""

from __future__ import annotations

import logging
import random
import time
from typing import NamedTuple

from placement import signals
from placement.index.snapshot import Snapshot
from placement.search.budget import Budget, Exhausted
from placement.search.choose import BREADTH_FIRST, choose
from placement.search.narrow.narrowing import Narrowed, narrow
from placement.search.narrow.trees import tree_problems
from placement.search.query.query import SearchQuery
from placement.search.refusals import Refusals
from placement.search.solver.problem import Candidate

LOG = logging.getLogger(__name__)

#: About the bytes of a candidate and what is shown of it, without the summaries of its providers, and for each pick.
_CANDIDATE, _PICK = 1300, 400
#: The part of the memory that is left for them; the other is for the summaries.
_SHARE = 2


class Found(NamedTuple):
    """The outcome of a search: candidates, the snapshot whose slots they name, and what every rule left out."""

    candidates: list[Candidate]
    snapshot: Snapshot
    refusals: Refusals
    #: False if trees were given up, and there may be others.
    complete: bool = True

    @property
    def obstacle(self) -> str:
        """Why there are none: the first rule that left nothing, without the class for ``resources``; or that what was
        left cannot be combined.  Empty if there are some."""
        return "" if self.candidates else self.refusals.obstacle


@signals.timed("search")
def search(
    request: SearchQuery,
    snapshot: Snapshot,
    *,
    most: int | None = None,
    strategy: str = BREADTH_FIRST,
    order: random.Random | None = None,
    budget: Budget | None = None,
) -> Found:
    """Where the request would fit.

    :param most: never give more candidates, even if the request asks for more.
    :param order: take trees and providers at random.
    :param budget: what it may use up.
    """
    began = time.perf_counter()
    budget = Budget() if budget is None else budget
    limit = min((limit for limit in (request.limit, most) if limit is not None), default=None)
    refusals = Refusals()
    try:
        narrowed = narrow(request, snapshot, budget, refusals)
    except Exhausted:
        candidates: list[Candidate] = []
    else:
        candidates = _chosen(narrowed, limit, strategy, order, budget, refusals)
    found = Found(candidates, snapshot, refusals, complete=budget.shortage is None)
    if not found.complete:
        LOG.warning(
            "Where %d groups would fit was not looked for to the end, for want of %s: %d candidates were found, and "
            "there may be more.",
            *(len(request.groups), budget.shortage, len(candidates)),
        )
    if signals.searched.connected:
        count = len(found.candidates)
        signals.searched(time.perf_counter() - began, count, count == limit, found.obstacle)
    return found


def _chosen(
    narrowed: Narrowed,
    limit: int | None,
    strategy: str,
    order: random.Random | None,
    budget: Budget,
    refusals: Refusals,
) -> list[Candidate]:
    """So many candidates, or as many as there is memory for."""
    each = _CANDIDATE + _PICK * len(narrowed.eligible)
    affordable = budget.memory // _SHARE // each
    few = affordable if limit is None else min(limit, affordable)
    candidates = choose(tree_problems(narrowed, order, budget), few, strategy, budget, refusals.refused)
    if len(candidates) == affordable != limit:
        budget.fall_short("memory")
    budget.memory = max(budget.memory - each * len(candidates), 0)
    return candidates
