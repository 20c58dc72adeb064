"""A search with its own record of what each rule removed, and a bound for many searches together.

It finds what ``find`` does, and looks at all trees also where it finds nothing.  Where no provider shares, arrays take
the place of loops over trees: trees of one provider are combined all at once, and of trees with equal combination
problems the solver searches one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from placement.extensions.v1.explain.equal_trees import EqualTrees, are_comparable, equal_trees, of_few_providers
from placement.index.slots import EMPTY, SlotSet
from placement.index.snapshot import Snapshot
from placement.search.budget import Budget, Exhausted
from placement.search.choose import choose
from placement.search.find import Settings
from placement.search.narrow.narrowing import Narrowed, narrow
from placement.search.narrow.tree_problems import tree_problems
from placement.search.query.query import SearchQuery
from placement.search.refusals import Refusals
from placement.search.solver.constraints import Isolation, RequiredTraits, SummedAmounts
from placement.search.solver.problem import Candidate, Requirements, TreeProblem

#: Trees are searched one by one until so many have no candidate; then the others are compared with each other.
FRUITLESS = 16

#: Returns the first candidates of narrowed trees, so many at most, and records those that have none.
_Combine = Callable[[Narrowed, int, Budget, Refusals], list[Candidate]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one search found, and what its rules removed."""

    candidates: list[Candidate]
    limited: bool
    complete: bool
    refusals: Refusals
    #: None if the budget ended before the rules were applied.
    narrowed: Narrowed | None
    #: How many operations of its budget it used.
    operations: int

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
    return _search(query, snapshot, limit, budget, _combined, root)


def patient_search(query: SearchQuery, snapshot: Snapshot, settings: Settings) -> Outcome:
    """Return the first candidate that ``find`` has with its whole budget, searched for in the same way."""
    budget = Budget(settings.operations, settings.memory)
    outcome = _search(query, snapshot, 1, budget, _combined_one_by_one)
    return replace(outcome, complete=budget.shortage is None and not outcome.found)


def _search(
    query: SearchQuery, snapshot: Snapshot, limit: int, budget: Budget, combine: _Combine, root: int | None = None
) -> Outcome:
    refusals = Refusals()
    candidates: list[Candidate] = []
    narrowed = None
    given = budget.operations
    try:
        narrowed = narrow(query, snapshot, budget, refusals)
        if root is not None:
            narrowed = narrowed._replace(roots=narrowed.roots & SlotSet.sparse(np.array([root], np.intp)))
        candidates = combine(narrowed, limit, budget, refusals)
    except Exhausted:
        pass
    complete = budget.shortage is None or len(candidates) == limit
    used = given - max(budget.operations, 0)
    return Outcome(candidates, len(candidates) == limit, complete, refusals, narrowed, used)


class Searches:
    """Searches for variations of one query, within one budget of operations for all of them.

    Attributes:
        complete: Whether the budget was enough so far.
        operations: How many of the budget were used so far.
        count: How many searches there were.
    """

    def __init__(self, snapshot: Snapshot, operations: int, most_each: int) -> None:
        """Begin with the whole budget.

        Args:
            operations: For all searches together.
            most_each: The most for one of them.
        """
        self.snapshot = snapshot
        self.complete = True
        self.operations = self.count = 0
        self._most = operations
        self._most_each = most_each

    def run(self, query: SearchQuery, limit: int, snapshot: Snapshot | None = None, root: int | None = None) -> Outcome:
        """Return the outcome of one search; without candidates once the budget is used up.

        Args:
            snapshot: Another one than that of the explanation.
            root: As for ``search``.
        """
        given = min(self._most - self.operations, self._most_each)
        budget = Budget(operations=given, fruitless=given)
        outcome = search(query, snapshot or self.snapshot, limit, budget, root)
        self.operations += outcome.operations
        self.count += 1
        self.complete &= outcome.complete
        return outcome


def _combined_one_by_one(narrowed: Narrowed, limit: int, budget: Budget, refusals: Refusals) -> list[Candidate]:
    """Return the first candidates of all trees, of which the solver searches each."""
    problems = tree_problems(narrowed, None, budget, refusals)
    return choose(problems, limit, budget=budget, refused=refusals.refused)


def _combined(narrowed: Narrowed, limit: int, budget: Budget, refusals: Refusals) -> list[Candidate]:
    """Return the first candidates of all trees, those of single providers first."""
    if not narrowed.eligible:
        return []
    candidates: list[Candidate] = []
    single = _single_providers(narrowed)
    if single:
        candidates = _candidates_of_roots(narrowed, single, limit, refusals)
        narrowed = narrowed._replace(roots=narrowed.roots - single)
    if len(candidates) < limit and narrowed.roots:
        trees = _Trees(narrowed, budget, refusals)
        candidates += choose(trees.problems(), limit - len(candidates), budget=budget, refused=trees.refused)
        trees.record()
    return candidates


def _single_providers(narrowed: Narrowed) -> SlotSet:
    """Return the trees in which the root alone can supply every demand; none if some provider shares."""
    if any(eligible.sharing for eligible in narrowed.eligible):
        return EMPTY
    forest = narrowed.snapshot.forest
    if not len(forest.children):
        return narrowed.roots
    return narrowed.roots - forest.roots_of(SlotSet.of(forest.children, forest.size))


def _candidates_of_roots(narrowed: Narrowed, roots: SlotSet, limit: int, refusals: Refusals) -> list[Candidate]:
    """Return the first candidates of trees of one provider, and record the trees that have none.

    Each has one candidate, or is refused for one of three reasons.  The reasons, and their order, are those of
    ``solver/combine.py``.
    """
    requirements, snapshot = Requirements.of(narrowed.query), narrowed.snapshot
    if requirements.isolate and requirements.suffixed_count > 1:
        refusals.all_refused(roots, Isolation.name)
        return []
    for names in requirements.required:
        having = SlotSet.union([snapshot.with_trait(name) for name in names], snapshot.size)
        refusals.all_refused(roots - having, RequiredTraits.name)
        roots &= having
    for name in requirements.summed_classes:
        column = snapshot.column(name)
        if column is None:
            continue
        enough = SlotSet.dense(column.available(snapshot.size) >= requirements.total[name])
        refusals.all_refused(roots - enough, SummedAmounts.name_for(name))
        roots &= enough
    return [
        Candidate({root: requirements.total}, dict.fromkeys(requirements.suffixes, (root,)))
        for root in islice(roots.slots().tolist(), limit)
    ]


class _Trees:
    """The problems of the trees that may have candidates, and a record of those that have none."""

    def __init__(self, narrowed: Narrowed, budget: Budget, refusals: Refusals) -> None:
        self._narrowed = narrowed
        self._budget = budget
        self._refusals = refusals
        self._equal: EqualTrees | None = None
        #: How many trees that were searched one by one have no candidate.
        self._fruitless = 0
        #: The numbers of the kinds of trees, by their first roots.
        self._kinds: dict[int, int] = {}
        #: Kinds without candidates, by the constraint.
        self._refused: dict[str, list[int]] = {}

    def problems(self) -> Iterator[TreeProblem]:
        """Yield problems of trees: of some one by one, of the others by kind, then those that cannot be compared.

        Raises:
            Exhausted: The budget is used up.
        """
        roots = self._narrowed.roots
        comparable, yielded = are_comparable(self._narrowed), 0
        for problem in self._problems_of(roots):
            yield problem
            yielded += 1
            if self._fruitless == FRUITLESS and comparable:
                break
        rest = SlotSet.sparse(roots.slots()[yielded:]) if comparable else EMPTY
        small = of_few_providers(rest, self._narrowed.snapshot.forest)
        yield from self._by_kind(small)
        yield from self._problems_of(rest - small)

    def _by_kind(self, roots: SlotSet) -> Iterator[TreeProblem]:
        """Yield the problem of one tree of each kind, then those of the others of the kinds that were not refused."""
        if not roots:
            return
        self._equal = equal = equal_trees(self._narrowed, roots, self._budget)
        self._kinds = {root: kind for kind, root in enumerate(equal.first.tolist())}
        yield from self._problems_of(SlotSet.sparse(equal.first))
        refused = [kind for kinds in self._refused.values() for kind in kinds]
        yield from self._problems_of(equal.others(refused))

    def _problems_of(self, roots: SlotSet) -> Iterator[TreeProblem]:
        return tree_problems(self._narrowed._replace(roots=roots), None, self._budget, self._refusals)

    def refused(self, root: int, constraint: str) -> None:
        """Record that a tree, and each of its kind, has no candidate."""
        kind = self._kinds.get(root)
        if kind is None:
            self._fruitless += 1
            self._refusals.refused(root, constraint)
        else:
            self._refused.setdefault(constraint, []).append(kind)

    def record(self) -> None:
        """Pass on the trees of the kinds that were refused."""
        for constraint, kinds in self._refused.items():
            assert self._equal is not None
            self._refusals.all_refused(self._equal.of_kinds(kinds), constraint)
