"""The entry point of a search: candidates for a query, or providers for a filter, in one snapshot of the index."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
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

#: Approximate bytes of a candidate and of its part of the response, without summaries of providers; bytes per demand.
_CANDIDATE, _DEMAND = 1300, 400
#: Divisor of the memory that candidates may use; the rest is for the summaries of providers.
_MEMORY_DIVISOR = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a deployment, the same for every search."""

    #: Maximum number of candidates, regardless of the query; None for no limit.
    max_candidates: int | None = None
    #: The strategy, ``choose.BREADTH_FIRST`` or ``choose.DEPTH_FIRST``.
    strategy: str = BREADTH_FIRST
    #: Whether to take trees, and the providers for each demand, in random order.
    randomize: bool = False
    #: Seed of the random order.
    seed: int | None = None
    #: The budget of each search (``budget.Budget``).
    operations: int = bounds.OPERATIONS
    memory: int = bounds.BYTES

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Self:
        """Return the settings in the options of the service."""
        options = conf.placement
        return cls(
            max_candidates=None if options.max_allocation_candidates < 0 else options.max_allocation_candidates,
            strategy=options.allocation_candidates_generation_strategy,
            randomize=options.randomize_allocation_candidates,
            operations=options.max_search_operations,
            memory=options.max_search_memory * 2**20,
        )


class SearchResult(NamedTuple):
    """The outcome of a search."""

    query: SearchQuery
    #: The snapshot whose slots identify the providers of the candidates.
    snapshot: Snapshot
    candidates: list[Candidate]
    refusals: Refusals
    #: Whether the limit ended the search, so that more candidates may exist.
    limited: bool
    #: The exhausted part of the budget, "operations" or "memory"; None if the search is complete.
    shortage: str | None
    #: Operations of the budget that the search used.
    operations: int
    #: Bytes of the budget that are left for the response.
    remaining_memory: int

    @property
    def complete(self) -> bool:
        """Whether the budget sufficed; otherwise more candidates may exist."""
        return self.shortage is None

    @property
    def obstacle(self) -> str:
        """The reason for the lack of candidates (``Refusals.obstacle``); empty with candidates."""
        return "" if self.candidates else self.refusals.obstacle


@signals.timed("search")
def find(query: SearchQuery, snapshot: Snapshot, settings: Settings | None = None) -> SearchResult:
    """Return the candidates for a query.

    The names in the query must exist (``existence.check``).
    """
    began = time.perf_counter()
    settings = Settings() if settings is None else settings
    budget = Budget(settings.operations, settings.memory)
    limit = query.limit
    if settings.max_candidates is not None and (limit is None or limit > settings.max_candidates):
        limit = settings.max_candidates
    refusals = Refusals()
    try:
        narrowed = narrow(query, snapshot, budget, refusals)
        candidates = _choose_candidates(narrowed, limit, settings, budget, refusals)
    except Exhausted:
        candidates = []
    result = SearchResult(
        query=query,
        snapshot=snapshot,
        candidates=candidates,
        refusals=refusals,
        limited=len(candidates) == limit,
        shortage=budget.shortage,
        operations=settings.operations - budget.operations,
        remaining_memory=budget.memory,
    )
    _report(result, time.perf_counter() - began)
    return result


def find_providers(provider_filter: ProviderFilter, snapshot: Snapshot) -> list[int]:
    """Return the slots of the providers that match the filter, ordered by id (docs: api-list-providers).

    Each provider is checked on its own, without its tree and without sharing providers.
    """
    slots = providers_serving(provider_filter.group, snapshot).slots()
    for lookup, key in ((snapshot.by_uuid, provider_filter.uuid), (snapshot.by_name, provider_filter.name)):
        if key is not None:
            slots = slots[slots == lookup.get(key, -1)]
    by_id: list[int] = slots[np.argsort(snapshot.providers.ids(slots))].tolist()
    return by_id


def _choose_candidates(
    narrowed: Narrowed, limit: int | None, settings: Settings, budget: Budget, refusals: Refusals
) -> list[Candidate]:
    """Return at most ``limit`` candidates, and no more than the memory permits."""
    size = _CANDIDATE + _DEMAND * narrowed.query.demand_count
    affordable = budget.memory // _MEMORY_DIVISOR // size
    count = affordable if limit is None else min(limit, affordable)
    order = random.Random(settings.seed) if settings.randomize else None
    candidates = choose(
        tree_problems(narrowed, order, budget, refusals), count, settings.strategy, budget, refusals.record_refusal
    )
    if len(candidates) == affordable != limit:
        budget.fall_short("memory")
    budget.memory = max(budget.memory - size * len(candidates), 0)
    return candidates


def _report(result: SearchResult, seconds: float) -> None:
    """Log an unusual search, and publish its figures."""
    if result.shortage is not None:
        LOG.warning(
            "The search for candidates of %d groups was cut short for lack of %s: it found %d candidates and may have "
            "missed others.",
            *(len(result.query.groups), result.shortage, len(result.candidates)),
        )
    elif not result.candidates and LOG.isEnabledFor(logging.DEBUG):
        LOG.debug("A search found no candidate: %s", result.refusals)
    if signals.searched.connected:
        signals.searched(seconds, len(result.candidates), result.limited, result.obstacle)
