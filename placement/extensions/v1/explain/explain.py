"""The entry point: the explanation of one query on one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from placement.extensions.v1.explain import sentence
from placement.extensions.v1.explain.class_inventories import InventoriesByClass
from placement.extensions.v1.explain.explanation import NO_PROVIDERS, Combination, Explanation, NearMiss, Step
from placement.extensions.v1.explain.mistakes import mistakes
from placement.extensions.v1.explain.near_misses import near_misses
from placement.extensions.v1.explain.recorded_search import (
    BudgetedSearches,
    full_budget_search,
    refusal_reasons,
    search,
)
from placement.extensions.v1.explain.relaxations import MAX_RELAXATIONS, RelaxationSearch
from placement.extensions.v1.explain.steps import combinations, steps
from placement.extensions.v1.explain.variations import QueryChange, Variations
from placement.index.snapshot import Snapshot
from placement.search.budget import Budget
from placement.search.find import Settings
from placement.search.query.query import SearchQuery
from placement.search.solver.work_limit import WORK_LIMIT

#: Maximum number of candidates counted.
MAX_CANDIDATES = 1_000
#: Operations (about a microsecond each) for the search itself, for all its variations, and for one variation.  A search
#: that exhausts the first budget without a candidate is repeated with the budget of ``find``.
_SEARCH, _VARIATIONS, _VARIATION = 50_000, 50_000, 20_000
#: Overhead in operations per search; providers per operation.
_SEARCH_OVERHEAD, _PROVIDERS_PER_OPERATION = 300, 5


def explain(
    query: SearchQuery,
    snapshot: Snapshot,
    settings: Settings | None = None,
    unknown_traits: Collection[str] = (),
) -> Explanation:
    """Return the explanation of a query: its candidates, the effect of each rule, and the changes that would be enough.

    The names in the query need not exist.

    Args:
        settings: The settings of the search; at most 1,000 candidates are counted.
        unknown_traits: The traits in the query that do not exist.
    """
    settings = Settings() if settings is None else settings
    limit = min(number for number in (query.limit, settings.max_candidates, MAX_CANDIDATES) if number is not None)
    outcome = search(query, snapshot, limit, Budget(min(settings.operations, _SEARCH), settings.memory))
    operations = outcome.operations
    if not (outcome.candidates or outcome.complete):
        outcome = full_budget_search(query, snapshot, settings)
        operations += outcome.operations
    limited = outcome.limited or bool(outcome.candidates and not outcome.complete)
    searches = BudgetedSearches(snapshot, min(settings.operations, _VARIATIONS), _VARIATION)
    amounts = InventoriesByClass(snapshot)
    reasons_budget = Budget(min(settings.operations, _SEARCH), settings.memory)
    refusals = outcome.refusals if outcome.candidates else refusal_reasons(outcome, reasons_budget)
    applied = steps(query, snapshot, refusals, amounts)
    changes: list[QueryChange] = []
    nearest: tuple[NearMiss, ...] = ()
    if not outcome.candidates:
        relaxation_search = RelaxationSearch(Variations(query, outcome, searches, unknown_traits), amounts)
        changes = relaxation_search.changes()
        nearest = near_misses(changes, relaxation_search, snapshot, amounts)
    combined = combinations(query, refusals, changes)
    offered = [change.relaxation for change in changes if change.query.avoided == query.avoided][:MAX_RELAXATIONS]
    relaxations = tuple(
        replace(relaxation, text=_with_names(relaxation.text, query, snapshot)) for relaxation in offered
    )
    query_mistakes = mistakes(query, outcome, searches, amounts, unknown_traits)
    stopped_at = next((step for step in applied if not step.after.trees), None)
    if outcome.candidates:
        summary = sentence.of_found(len(outcome.candidates), limited)
    elif not len(snapshot):
        summary = sentence.NO_PROVIDERS
    else:
        summary = sentence.of_obstacle(stopped_at, combined, relaxations, query_mistakes, searches.complete)
    return Explanation(
        query=query,
        snapshot=snapshot,
        found=len(outcome.candidates),
        limited=limited,
        complete=outcome.complete and searches.complete and reasons_budget.shortage is None,
        operations=operations
        + searches.operations
        + searches.count * _SEARCH_OVERHEAD
        + snapshot.size // _PROVIDERS_PER_OPERATION,
        summary=_with_names(summary, query, snapshot),
        obstacle=None if outcome.candidates else _obstacle(len(snapshot), stopped_at, combined),
        steps=applied,
        combinations=combined,
        near_misses=tuple(_add_names(near_miss, query, snapshot) for near_miss in nearest),
        relaxations=relaxations,
        mistakes=query_mistakes,
    )


def _obstacle(providers: int, stopped_at: Step | None, combined: Sequence[Combination]) -> tuple[str, str | None]:
    """Return the narrowing rule that left no tree, or else the first rule that ruled out combinations."""
    if not providers:
        return NO_PROVIDERS, None
    if stopped_at is not None:
        return stopped_at.rule, stopped_at.group
    return combined[0].rule if combined else WORK_LIMIT, None


def _add_names(near_miss: NearMiss, query: SearchQuery, snapshot: Snapshot) -> NearMiss:
    missing = (replace(item, text=_with_names(item.text, query, snapshot)) for item in near_miss.missing)
    return replace(near_miss, missing=tuple(missing))


def _with_names(text: str, query: SearchQuery, snapshot: Snapshot) -> str:
    """Return a text with the uuids in ``in_tree`` replaced by the names of the providers."""
    for group in query.groups:
        slot = snapshot.by_uuid.get(group.in_tree or "")
        if slot is not None:
            text = text.replace(f"={group.in_tree}", f"={snapshot.provider(slot).name or group.in_tree}")
    return text
