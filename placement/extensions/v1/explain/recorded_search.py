"""A search with its own record of what each rule removed, and a bound for many searches together.

It finds what ``find`` does, and records for each tree without a candidate why it has none.  Where no provider shares,
arrays find the trees with equal combination problems, and the solver searches one of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from placement.extensions.v1.explain.equivalent_trees import TreeClasses, are_comparable, equivalent_trees, small_trees
from placement.index.slots import EMPTY, SlotSet
from placement.index.snapshot import Snapshot
from placement.search.budget import Budget, Exhausted
from placement.search.choose import choose
from placement.search.find import Settings
from placement.search.narrow.narrowing import Narrowed, narrow
from placement.search.narrow.tree_problems import tree_problems
from placement.search.query.query import SearchQuery
from placement.search.refusals import Refusals
from placement.search.solver.constraints import NotOnlyShared
from placement.search.solver.problem import Candidate, TreeProblem

#: Trees are searched one by one until this many have no candidate; then the others are compared with each other.
FRUITLESS = 16

#: Returns the first candidates of narrowed trees, up to a limit, and records the trees that have none.
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


def search(query: SearchQuery, snapshot: Snapshot, limit: int, budget: Budget, among: SlotSet | None = None) -> Outcome:
    """Return the first ``limit`` candidates.

    Args:
        among: The roots of the trees to look at; None for all.
    """
    return _search(query, snapshot, limit, budget, _combined, among)


def full_budget_search(query: SearchQuery, snapshot: Snapshot, settings: Settings) -> Outcome:
    """Return the first candidate, searched for as ``find`` does and with its whole budget."""
    budget = Budget(settings.operations, settings.memory)
    outcome = _search(query, snapshot, 1, budget, _combined_one_by_one)
    return replace(outcome, complete=budget.shortage is None and not outcome.found)


def refusal_reasons(outcome: Outcome, budget: Budget) -> Refusals:
    """Return the refusals of a search without candidates, in which each tree has a reason of its own.

    The search leaves out trees that could only repeat the candidates of others.  If no tree has any, that is no reason.
    """
    refusals = outcome.refusals
    narrowing = [refusal for refusal in refusals.narrowing if refusal.rule != NotOnlyShared.name]
    if NotOnlyShared.name not in refusals.combining and len(narrowing) == len(refusals.narrowing):
        return refusals
    assert outcome.narrowed is not None
    found = Refusals(narrowing)
    choose(tree_problems(outcome.narrowed, None, budget, found, repeated=True), 1, budget=budget, refused=found.refused)
    return found


def _search(
    query: SearchQuery,
    snapshot: Snapshot,
    limit: int,
    budget: Budget,
    combine: _Combine,
    among: SlotSet | None = None,
) -> Outcome:
    refusals = Refusals()
    candidates: list[Candidate] = []
    narrowed = None
    given = budget.operations
    try:
        narrowed = narrow(query, snapshot, budget, refusals, among)
        candidates = combine(narrowed, limit, budget, refusals)
    except Exhausted:
        pass
    complete = budget.shortage is None or len(candidates) == limit
    used = given - max(budget.operations, 0)
    return Outcome(candidates, len(candidates) == limit, complete, refusals, narrowed, used)


class BudgetedSearches:
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

    @property
    def left(self) -> bool:
        """Whether any of the budget is left."""
        return self.operations < self._most

    def run(self, query: SearchQuery, limit: int, among: SlotSet | None = None) -> Outcome:
        """Return the outcome of one search, as ``search`` does; without candidates once the budget is used up."""
        given = min(self._most - self.operations, self._most_each)
        budget = Budget(operations=given, fruitless=given)
        outcome = search(query, self.snapshot, limit, budget, among)
        self.operations += outcome.operations
        self.count += 1
        self.complete &= outcome.complete
        return outcome


def _combined_one_by_one(narrowed: Narrowed, limit: int, budget: Budget, refusals: Refusals) -> list[Candidate]:
    """Return the first candidates of all trees; the solver searches each of them."""
    problems = tree_problems(narrowed, None, budget, refusals)
    return choose(problems, limit, budget=budget, refused=refusals.refused)


def _combined(narrowed: Narrowed, limit: int, budget: Budget, refusals: Refusals) -> list[Candidate]:
    """Return the first candidates of all trees, those of single providers first."""
    if not narrowed.eligible:
        return []
    lone = SlotSet.dense(narrowed.snapshot.forest.is_lone) if are_comparable(narrowed) else EMPTY
    candidates = _combined_one_by_one(narrowed._replace(roots=narrowed.roots & lone), limit, budget, refusals)
    narrowed = narrowed._replace(roots=narrowed.roots - lone)
    if len(candidates) < limit and narrowed.roots:
        trees = _Trees(narrowed, budget, refusals)
        candidates += choose(trees.problems(), limit - len(candidates), budget=budget, refused=trees.refused)
        trees.record()
    return candidates


class _Trees:
    """The problems of the trees that may have candidates, and a record of those that have none."""

    def __init__(self, narrowed: Narrowed, budget: Budget, refusals: Refusals) -> None:
        self._narrowed = narrowed
        self._budget = budget
        self._refusals = refusals
        self._equal: TreeClasses | None = None
        #: How many trees that were searched one by one have no candidate.
        self._fruitless = 0
        #: The number of each kind, by the root of its first tree.
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
        small = small_trees(rest, self._narrowed.snapshot.forest)
        yield from self._by_kind(small)
        yield from self._problems_of(rest - small)

    def _by_kind(self, roots: SlotSet) -> Iterator[TreeProblem]:
        """Yield the problem of one tree of each kind, then the other trees of the kinds that were not refused."""
        if not roots:
            return
        self._equal = equal = equivalent_trees(self._narrowed, roots, self._budget)
        self._kinds = {root: kind for kind, root in enumerate(equal.first.tolist())}
        yield from self._problems_of(SlotSet.sparse(equal.first))
        refused = [kind for kinds in self._refused.values() for kind in kinds]
        yield from self._problems_of(equal.others(refused))

    def _problems_of(self, roots: SlotSet) -> Iterator[TreeProblem]:
        return tree_problems(self._narrowed._replace(roots=roots), None, self._budget, self._refusals)

    def refused(self, root: int, constraint: str) -> None:
        """Record that a tree, and with it each tree of its kind, has no candidate."""
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
            self._refusals.all_refused(self._equal.of_classes(kinds).slots(), constraint)
