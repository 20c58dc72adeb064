"""The whole search, from a request to the candidates that are chosen."""

from __future__ import annotations

import logging
import random
import time
from typing import NamedTuple

from placement import signals
from placement.candidates.choose import BREADTH_FIRST, choose
from placement.candidates.narrow import narrow
from placement.candidates.patience import Patience
from placement.candidates.problem import Candidate
from placement.candidates.request import CandidateRequest
from placement.candidates.selection import Step
from placement.candidates.trees import problems
from placement.index.snapshot import Snapshot

LOG = logging.getLogger(__name__)

#: What one reply may map, picks times candidates: ten thousand candidates of a few hundred groups are gigabytes.
_MOST_PICKS = 400_000


class Found(NamedTuple):
    """The outcome of a search: candidates, the snapshot whose slots they name, and what every rule left out."""

    candidates: list[Candidate]
    snapshot: Snapshot
    steps: tuple[Step, ...]
    #: False if trees were given up, and there may be others.
    complete: bool = True

    @property
    def obstacle(self) -> str:
        """Why there are none: the first rule that left nothing, without the class for ``resources``; or that what was
        left cannot be combined.  Empty if there are some."""
        if self.candidates:
            return ""
        return next((step.rule.partition(":")[0] for step in self.steps if not len(step.after)), "combination")


@signals.part("search")
def search(
    request: CandidateRequest,
    snapshot: Snapshot,
    *,
    most: int | None = None,
    strategy: str = BREADTH_FIRST,
    order: random.Random | None = None,
) -> Found:
    """Where the request would fit.

    :param most: never give more candidates, whatever the request wants; and fewer where it has very many groups.
    :param order: take trees and providers at random.
    """
    began = time.perf_counter()
    narrowed = narrow(request, snapshot)
    if most is not None:
        most = min(most, _MOST_PICKS // max(len(narrowed.plan.picks), 1))
    limit = min((limit for limit in (request.limit, most) if limit is not None), default=None)
    patience = Patience()
    candidates = choose(problems(narrowed, order), limit, strategy, patience)
    found = Found(candidates, snapshot, narrowed.steps, complete=not patience.lost)
    if patience.lost:
        LOG.warning(
            "Where %d groups would fit was not looked for to the end: %d candidates were found, and there may be more.",
            *(len(request.groups), len(candidates)),
        )
    if signals.searched.heard:
        count = len(found.candidates)
        signals.searched(time.perf_counter() - began, count, count == limit, found.obstacle)
    return found
