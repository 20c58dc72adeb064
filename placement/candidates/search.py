"""The whole search, from a request to the candidates that are chosen."""

from __future__ import annotations

import random
import time
from typing import NamedTuple

from placement import signals
from placement.candidates.choose import BREADTH_FIRST, choose
from placement.candidates.narrow import narrow
from placement.candidates.problem import Candidate
from placement.candidates.request import CandidateRequest
from placement.candidates.selection import Step
from placement.candidates.trees import problems
from placement.index.snapshot import Snapshot


class Found(NamedTuple):
    """The outcome of a search: candidates, the snapshot whose slots they name, and what every rule left out."""

    candidates: list[Candidate]
    snapshot: Snapshot
    steps: tuple[Step, ...]

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

    :param most: never give more candidates, whatever the request wants.
    :param order: take trees and providers at random.
    """
    began = time.perf_counter()
    limits = [limit for limit in (request.limit, most) if limit is not None]
    narrowed = narrow(request, snapshot)
    limit = min(limits, default=None)
    found = Found(choose(problems(narrowed, order), limit, strategy), snapshot, narrowed.steps)
    if signals.searched.heard:
        count = len(found.candidates)
        signals.searched(time.perf_counter() - began, count, count == limit, found.obstacle)
    return found
