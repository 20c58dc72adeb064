"""A search with its own record of what each rule removed, and a bound for many searches together.

Trees of one provider, without a sharing provider that could help, are combined here, all at once: each has one
candidate, or is refused for one of three reasons.  All other trees are the solver's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from placement.index.slots import EMPTY, SlotSet
from placement.index.snapshot import Snapshot
from placement.search.budget import Budget, Exhausted
from placement.search.choose import choose
from placement.search.narrow.narrowing import Narrowed, narrow
from placement.search.narrow.tree_problems import tree_problems
from placement.search.query.query import SearchQuery
from placement.search.refusals import EXAMPLES, Refusals
from placement.search.solver.constraints import Isolation, RequiredTraits, SummedAmounts
from placement.search.solver.problem import Candidate, Requirements


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one search found, and what its rules removed."""

    candidates: list[Candidate]
    limited: bool
    complete: bool
    refusals: Refusals
    #: None if the budget ended before the rules were applied.
    narrowed: Narrowed | None

    @property
    def found(self) -> int:
        """The number of candidates."""
        return len(self.candidates)

    @property
    def roots(self) -> SlotSet:
        """The roots of the trees where each demand can be supplied by itself."""
        return self.narrowed.roots if self.narrowed is not None and self.narrowed.eligible else EMPTY


def search(query: SearchQuery, snapshot: Snapshot, limit: int, budget: Budget, root: int | None = None) -> Outcome:
    """Return the first ``limit`` candidates.

    Args:
        root: The only tree to look at; None for all.
    """
    refusals = Refusals()
    candidates: list[Candidate] = []
    narrowed = None
    try:
        narrowed = narrow(query, snapshot, budget, refusals)
        if root is not None:
            narrowed = narrowed._replace(roots=narrowed.roots & SlotSet.sparse(np.array([root], np.intp)))
        candidates = _combined(narrowed, limit, budget, refusals)
    except Exhausted:
        pass
    complete = budget.shortage is None or len(candidates) == limit
    return Outcome(candidates, len(candidates) == limit, complete, refusals, narrowed)


class Searches:
    """Searches for variations of one query, within one budget of operations for all of them.

    Attributes:
        complete: Whether the budget was enough so far.
    """

    def __init__(self, snapshot: Snapshot, operations: int, most_each: int) -> None:
        """Begin with the whole budget.

        Args:
            operations: For all searches together.
            most_each: The most for one of them.
        """
        self.snapshot = snapshot
        self.complete = True
        self._operations = operations
        self._most_each = most_each

    def run(self, query: SearchQuery, limit: int, snapshot: Snapshot | None = None, root: int | None = None) -> Outcome:
        """Return the outcome of one search; without candidates once the budget is used up.

        Args:
            snapshot: Another one than that of the explanation.
            root: As for ``search``.
        """
        given = max(min(self._operations, self._most_each), 0)
        budget = Budget(operations=given, fruitless=given)
        outcome = search(query, snapshot or self.snapshot, limit, budget, root)
        self._operations -= given - max(budget.operations, 0)
        self.complete &= outcome.complete
        return outcome


def _combined(narrowed: Narrowed, limit: int, budget: Budget, refusals: Refusals) -> list[Candidate]:
    """Return the first candidates of all trees, those of single providers first."""
    if not narrowed.eligible:
        return []
    candidates: list[Candidate] = []
    single = _single_trees(narrowed)
    if single:
        candidates = _of_single_providers(narrowed, single, limit, refusals)
        narrowed = narrowed._replace(roots=narrowed.roots - single)
    if len(candidates) < limit and narrowed.roots:
        problems = tree_problems(narrowed, None, budget, refusals)
        candidates += choose(problems, limit - len(candidates), budget=budget, refused=refusals.refused)
    return candidates


def _single_trees(narrowed: Narrowed) -> SlotSet:
    """Return the roots of the trees in which the root alone can supply every demand; none if some provider shares."""
    if any(eligible.sharing for eligible in narrowed.eligible):
        return EMPTY
    forest = narrowed.snapshot.forest
    if not len(forest.children):
        return narrowed.roots
    return narrowed.roots - forest.roots_of(SlotSet.of(forest.children, forest.size))


def _of_single_providers(narrowed: Narrowed, roots: SlotSet, limit: int, refusals: Refusals) -> list[Candidate]:
    """Return the candidates of trees of one provider, and record the trees that have none.

    The reasons, and their order, are those of ``solver/combine.py``.
    """
    requirements, snapshot = Requirements.of(narrowed.query), narrowed.snapshot
    if requirements.isolate and requirements.suffixed_count > 1:
        _refuse(refusals, Isolation.name, roots)
        return []
    for names in requirements.required:
        having = SlotSet.union([snapshot.with_trait(name) for name in names], snapshot.size)
        _refuse(refusals, RequiredTraits.name, roots - having)
        roots &= having
    for name in requirements.summed_classes:
        column = snapshot.column(name)
        if column is None:
            continue
        enough = SlotSet.dense(column.available(snapshot.size) >= requirements.total[name])
        _refuse(refusals, SummedAmounts.name_for(name), roots - enough)
        roots &= enough
    return [
        Candidate({root: requirements.total}, dict.fromkeys(requirements.suffixes, (root,)))
        for root in islice(roots.slots().tolist(), limit)
    ]


def _refuse(refusals: Refusals, constraint: str, roots: SlotSet) -> None:
    """Record that these trees have no candidate."""
    slots = roots.slots()
    for root in slots[:EXAMPLES].tolist():
        refusals.refused(root, constraint)
    if len(slots) > EXAMPLES:
        refusals.combining[constraint] += len(slots) - EXAMPLES
