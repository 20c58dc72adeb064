"""The entry to a search: candidates for a query, or providers for a filter, from one snapshot of the index."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass
from typing import NamedTuple, Self

from oslo_config import cfg

from placement import signals
from placement.index.snapshot import Snapshot
from placement.search import budget as bounds
from placement.search.budget import Budget, Exhausted
from placement.search.choose import BREADTH_FIRST, choose
from placement.search.narrow.narrowing import Narrowed, narrow, providers_serving
from placement.search.narrow.tree_problems import tree_problems
from placement.search.query.query import ProviderFilter, SearchQuery
from placement.search.refusals import Refusals
from placement.search.solver.problem import Candidate

LOG = logging.getLogger(__name__)

#: About the bytes of a candidate and of its part in a reply, without summaries of providers: this, and for each demand.
_CANDIDATE, _DEMAND = 1300, 400
#: Candidates may use this part of the memory, a half; the rest is for the summaries.
_SHARE = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """What a deployment prefers and allows, the same for every search."""

    #: The most candidates that a search may return, also if the query requests more; None: no bound.
    max_candidates: int | None = None
    #: ``choose.BREADTH_FIRST`` or ``choose.DEPTH_FIRST``.
    strategy: str = BREADTH_FIRST
    #: Whether trees, and the providers for each demand, are taken in random order.
    randomize: bool = False
    #: Makes the random order repeatable.
    seed: int | None = None
    #: The budget of each search (``budget``).
    operations: int = bounds.OPERATIONS
    memory: int = bounds.BYTES

    @classmethod
    def of(cls, conf: cfg.ConfigOpts) -> Self:
        """Return the settings that the options of the service make."""
        options = conf.placement
        return cls(
            max_candidates=None if options.max_allocation_candidates < 0 else options.max_allocation_candidates,
            strategy=options.allocation_candidates_generation_strategy,
            randomize=options.randomize_allocation_candidates,
            operations=options.max_search_operations,
            memory=options.max_search_memory * 2**20,
        )


class Found(NamedTuple):
    """The outcome of a search."""

    query: SearchQuery
    #: The candidates name providers by their slots in this snapshot.
    snapshot: Snapshot
    candidates: list[Candidate]
    refusals: Refusals
    #: Whether there are as many candidates as were requested or allowed, and there may be more.
    limited: bool
    #: What the budget had too little of, "operations" or "memory"; None if the search was not cut short.
    shortage: str | None
    #: How many operations of its budget the search used.
    operations: int
    #: How many bytes of its budget are left, for the reply.
    remaining_memory: int

    @property
    def complete(self) -> bool:
        """Whether the budget was enough: otherwise there may be candidates that were not found."""
        return self.shortage is None

    @property
    def obstacle(self) -> str:
        """Why there is no candidate (``Refusals.obstacle``); empty if there are some."""
        return "" if self.candidates else self.refusals.obstacle


@signals.timed("search")
def find(query: SearchQuery, snapshot: Snapshot, settings: Settings | None = None) -> Found:
    """Return candidates for the query.

    The names in the query must exist (``existence.check``).
    """
    began = time.perf_counter()
    settings = Settings() if settings is None else settings
    budget = Budget(settings.operations, settings.memory)
    limit, most = query.limit, settings.max_candidates
    if most is not None and (limit is None or limit > most):
        limit = most
    refusals = Refusals()
    try:
        narrowed = narrow(query, snapshot, budget, refusals)
        candidates = _candidates(narrowed, limit, settings, budget, refusals)
    except Exhausted:
        candidates = []
    found = Found(
        query=query,
        snapshot=snapshot,
        candidates=candidates,
        refusals=refusals,
        limited=len(candidates) == limit,
        shortage=budget.shortage,
        operations=settings.operations - budget.operations,
        remaining_memory=budget.memory,
    )
    _report(found, time.perf_counter() - began)
    return found


def find_providers(wanted: ProviderFilter, snapshot: Snapshot) -> list[int]:
    """Return the slots of the providers that match the filter, in the order of their ids (docs: api-list-providers).

    Each provider is judged by itself: its tree and sharing providers do not matter.
    """
    slots = providers_serving(wanted.group, snapshot).slots().tolist()
    if wanted.uuid is not None:
        named = snapshot.by_uuid.get(wanted.uuid)
        slots = [slot for slot in slots if slot == named]
    if wanted.name is not None:
        slots = [slot for slot in slots if snapshot.provider(slot).name == wanted.name]
    return sorted(slots, key=lambda slot: snapshot.provider(slot).id)


def _candidates(
    narrowed: Narrowed, limit: int | None, settings: Settings, budget: Budget, refusals: Refusals
) -> list[Candidate]:
    """Return at most ``limit`` candidates, or as many as there is memory for."""
    size = _CANDIDATE + _DEMAND * narrowed.query.demand_count
    affordable = budget.memory // _SHARE // size
    count = affordable if limit is None else min(limit, affordable)
    order = random.Random(settings.seed) if settings.randomize else None
    candidates = choose(
        tree_problems(narrowed, order, budget, refusals), count, settings.strategy, budget, refusals.refused
    )
    if len(candidates) == affordable != limit:
        budget.fall_short("memory")
    budget.memory = max(budget.memory - size * len(candidates), 0)
    return candidates


def _report(found: Found, seconds: float) -> None:
    """Log and count the search."""
    if found.shortage is not None:
        LOG.warning(
            "The search for candidates of %d groups was cut short for lack of %s: %d candidates were found, and there "
            "may be more.",
            *(len(found.query.groups), found.shortage, len(found.candidates)),
        )
    elif not found.candidates and LOG.isEnabledFor(logging.DEBUG):
        LOG.debug("A search found no candidate: %s", found.refusals)
    if signals.searched.connected:
        signals.searched(seconds, len(found.candidates), found.limited, found.obstacle)
