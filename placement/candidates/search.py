"""The whole search, from a request to the candidates that are chosen."""

from __future__ import annotations

import random
from typing import NamedTuple

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
    limits = [limit for limit in (request.limit, most) if limit is not None]
    narrowed = narrow(request, snapshot)
    chosen = choose(problems(narrowed, order), min(limits, default=None), strategy)
    return Found(chosen, snapshot, narrowed.steps)
