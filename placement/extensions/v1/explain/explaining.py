"""The entry: the explanation of one query on one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from placement.extensions.v1.explain import sentence
from placement.extensions.v1.explain.amounts import AmountsByClass
from placement.extensions.v1.explain.explanation import Combination, Explanation, NearMiss, Relaxation, Step
from placement.extensions.v1.explain.mistakes import Names, mistakes
from placement.extensions.v1.explain.near_misses import near_misses
from placement.extensions.v1.explain.relaxations import of_several, relaxations
from placement.extensions.v1.explain.searching import Searches, patient_search, search
from placement.extensions.v1.explain.steps import combinations, steps
from placement.index.snapshot import Snapshot
from placement.search.budget import Budget
from placement.search.find import Settings
from placement.search.query.query import SearchQuery
from placement.search.solver.work_limit import WORK_LIMIT

#: How many candidates are counted at most.
COUNTED = 1_000
#: Operations (about a microsecond each) for the search itself, for all searches of its variations, and for one of them.
#: A search that finds nothing with so few is repeated with those of ``find``.
_SEARCH, _VARIATIONS, _VARIATION = 50_000, 50_000, 20_000
#: Added for an explanation: about this many operations for each of its searches, and one for each few providers.
_EACH, _AT_ONCE = 300, 5


def explain(
    query: SearchQuery, snapshot: Snapshot, settings: Settings | None = None, names: Names | None = None
) -> Explanation:
    """Return what a search for the query finds, what each rule removed, and what would be enough.

    The names in the query need not exist.

    Args:
        settings: Those of the search; at most 1,000 candidates are counted.
        names: What is known of the names in the query.
    """
    settings = Settings() if settings is None else settings
    limit = min(number for number in (query.limit, settings.max_candidates, COUNTED) if number is not None)
    outcome = search(query, snapshot, limit, Budget(min(settings.operations, _SEARCH), settings.memory))
    operations = outcome.operations
    if not (outcome.found or outcome.complete):
        outcome = patient_search(query, snapshot, settings)
        operations += outcome.operations
    limited = outcome.limited or bool(outcome.found and not outcome.complete)
    searches = Searches(snapshot, min(settings.operations, _VARIATIONS), _VARIATION)
    amounts = AmountsByClass(snapshot)
    applied = steps(query, snapshot, outcome.refusals, amounts)
    combined = combinations(query, outcome.refusals)
    nearest: tuple[NearMiss, ...] = ()
    enough: tuple[Relaxation, ...] = ()
    if not outcome.found:
        enough = relaxations(query, outcome.refusals, searches, amounts)
        nearest = near_misses(query, outcome.roots, searches, amounts)
        enough = enough or of_several(query, nearest, searches)
    wrong = mistakes(query, outcome, names or Names(), searches, amounts)
    stopped_at = next((step for step in applied if not step.after.trees), None)
    return Explanation(
        query=query,
        snapshot=snapshot,
        found=outcome.found,
        limited=limited,
        complete=outcome.complete and searches.complete,
        operations=operations + searches.operations + searches.count * _EACH + snapshot.size // _AT_ONCE,
        summary=sentence.of_found(outcome.found, limited)
        if outcome.found
        else sentence.of_obstacle(stopped_at, combined, enough, wrong),
        obstacle=None if outcome.found else _obstacle(stopped_at, combined),
        steps=applied,
        combinations=combined,
        near_misses=nearest,
        relaxations=enough,
        mistakes=wrong,
    )


def _obstacle(stopped_at: Step | None, combined: Sequence[Combination]) -> tuple[str, str | None]:
    """Return the rule that left nothing: of narrowing, or else the one that rules out most combinations."""
    if stopped_at is not None:
        return stopped_at.rule, stopped_at.group
    return combined[0].rule if combined else WORK_LIMIT, None
