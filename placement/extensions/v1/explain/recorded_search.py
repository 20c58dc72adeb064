"""A search that records the reason why each tree has no candidate, and a common budget for many searches.

It finds the same candidates as ``find``.  Unless a sharing provider is eligible, arrays find classes of equivalent
trees, and the solver searches one tree of each class.
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

#: Failed searches of single trees before the remaining trees are grouped into classes.
FRUITLESS = 16

#: A function that returns the first candidates of narrowed trees, up to a limit, and records the trees without one.
_Combine = Callable[[Narrowed, int, Budget, Refusals], list[Candidate]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The candidates of one search, and the effect of its rules."""

    candidates: list[Candidate]
    limited: bool
    complete: bool
    refusals: Refusals
    #: The result of narrowing; None if the budget ran out before the rules were applied.
    narrowed: Narrowed | None
    #: Operations spent from its budget.
    operations: int

    @property
    def roots(self) -> SlotSet:
        """The roots of the trees in which each demand can be supplied on its own."""
        return self.narrowed.roots if self.narrowed is not None and self.narrowed.eligible else EMPTY


def search(
    query: SearchQuery, snapshot: Snapshot, limit: int, budget: Budget, tree_roots: SlotSet | None = None
) -> Outcome:
    """Search for the first ``limit`` candidates.

    Args:
        tree_roots: Roots of the trees to search; None for all.
    """
    return _search(query, snapshot, limit, budget, _search_classes, tree_roots)


def full_budget_search(query: SearchQuery, snapshot: Snapshot, settings: Settings) -> Outcome:
    """Search for one candidate like ``find``, with its whole budget."""
    budget = Budget(settings.operations, settings.memory)
    outcome = _search(query, snapshot, 1, budget, _search_trees)
    return replace(outcome, complete=budget.shortage is None and not outcome.candidates)


def refusal_reasons(outcome: Outcome, budget: Budget) -> Refusals:
    """Return the refusals of a search without candidates, with a reason for each tree.

    The search skips trees that could only repeat the candidates of other trees.  Without candidates, a skipped tree
    still needs a reason, so this search includes these trees.
    """
    refusals = outcome.refusals
    narrowing = [refusal for refusal in refusals.narrowing if refusal.rule != NotOnlyShared.name]
    if NotOnlyShared.name not in refusals.combining and len(narrowing) == len(refusals.narrowing):
        return refusals
    assert outcome.narrowed is not None
    complete = Refusals(narrowing)
    problems = tree_problems(outcome.narrowed, None, budget, complete, repeated=True)
    choose(problems, 1, budget=budget, refused=complete.record_refusal)
    return complete


def _search(
    query: SearchQuery,
    snapshot: Snapshot,
    limit: int,
    budget: Budget,
    combine: _Combine,
    tree_roots: SlotSet | None = None,
) -> Outcome:
    refusals = Refusals()
    candidates: list[Candidate] = []
    narrowed = None
    granted = budget.operations
    try:
        narrowed = narrow(query, snapshot, budget, refusals, tree_roots)
        candidates = combine(narrowed, limit, budget, refusals)
    except Exhausted:
        pass
    complete = budget.shortage is None or len(candidates) == limit
    used = granted - max(budget.operations, 0)
    return Outcome(candidates, len(candidates) == limit, complete, refusals, narrowed, used)


class BudgetedSearches:
    """Searches for variations of one query that share a budget of operations.

    Attributes:
        complete: Whether the budget has been enough so far.
        operations: Operations spent so far.
        count: Searches so far.
    """

    def __init__(self, snapshot: Snapshot, operations: int, operations_each: int) -> None:
        """Set the limits.

        Args:
            operations: Operations for all searches together.
            operations_each: Operations for a single search.
        """
        self.snapshot = snapshot
        self.complete = True
        self.operations = self.count = 0
        self._total = operations
        self._operations_each = operations_each

    @property
    def has_operations(self) -> bool:
        """Whether any operations are left."""
        return self.operations < self._total

    def run(self, query: SearchQuery, limit: int, tree_roots: SlotSet | None = None) -> Outcome:
        """Return the outcome of one search; it has no candidates once the budget is exhausted."""
        granted = min(self._total - self.operations, self._operations_each)
        budget = Budget(operations=granted, fruitless=granted)
        outcome = search(query, self.snapshot, limit, budget, tree_roots)
        self.operations += outcome.operations
        self.count += 1
        self.complete &= outcome.complete
        return outcome


def _search_trees(narrowed: Narrowed, limit: int, budget: Budget, refusals: Refusals) -> list[Candidate]:
    """Return the first candidates of all trees; the solver searches each tree."""
    problems = tree_problems(narrowed, None, budget, refusals)
    return choose(problems, limit, budget=budget, refused=refusals.record_refusal)


def _search_classes(narrowed: Narrowed, limit: int, budget: Budget, refusals: Refusals) -> list[Candidate]:
    """Return the first candidates of all trees, starting with trees of one provider."""
    if not narrowed.eligible:
        return []
    lone = SlotSet.dense(narrowed.snapshot.forest.is_lone) if are_comparable(narrowed) else EMPTY
    candidates = _search_trees(narrowed._replace(roots=narrowed.roots & lone), limit, budget, refusals)
    narrowed = narrowed._replace(roots=narrowed.roots - lone)
    if len(candidates) < limit and narrowed.roots:
        trees = _Trees(narrowed, budget, refusals)
        candidates += choose(trees.problems(), limit - len(candidates), budget=budget, refused=trees.record_refusal)
        trees.record()
    return candidates


class _Trees:
    """The problems of trees that may have candidates, and a record of the trees without one."""

    def __init__(self, narrowed: Narrowed, budget: Budget, refusals: Refusals) -> None:
        self._narrowed = narrowed
        self._budget = budget
        self._refusals = refusals
        self._tree_classes: TreeClasses | None = None
        #: Trees searched one by one that have no candidate.
        self._fruitless = 0
        #: The number of each class, by the root of its first tree.
        self._classes: dict[int, int] = {}
        #: Classes without candidates, by constraint.
        self._refused: dict[str, list[int]] = {}

    def problems(self) -> Iterator[TreeProblem]:
        """Yield the problems of some trees one by one, then one per class, then the trees that cannot be compared.

        Raises:
            Exhausted: The budget is exhausted.
        """
        roots = self._narrowed.roots
        comparable, yielded = are_comparable(self._narrowed), 0
        for problem in self._problems_of(roots):
            yield problem
            yielded += 1
            if self._fruitless == FRUITLESS and comparable:
                break
        remaining = SlotSet.sparse(roots.slots()[yielded:]) if comparable else EMPTY
        small = small_trees(remaining, self._narrowed.snapshot.forest)
        yield from self._by_class(small)
        yield from self._problems_of(remaining - small)

    def _by_class(self, roots: SlotSet) -> Iterator[TreeProblem]:
        """Yield the problem of one tree of each class, then the other trees of the classes that were not refused."""
        if not roots:
            return
        self._tree_classes = tree_classes = equivalent_trees(self._narrowed, roots, self._budget)
        self._classes = {root: number for number, root in enumerate(tree_classes.first.tolist())}
        yield from self._problems_of(SlotSet.sparse(tree_classes.first))
        refused = [number for classes in self._refused.values() for number in classes]
        yield from self._problems_of(tree_classes.other_trees(refused))

    def _problems_of(self, roots: SlotSet) -> Iterator[TreeProblem]:
        return tree_problems(self._narrowed._replace(roots=roots), None, self._budget, self._refusals)

    def record_refusal(self, root: int, constraint: str) -> None:
        """Record that a tree, and with it every tree of its class, has no candidate."""
        number = self._classes.get(root)
        if number is None:
            self._fruitless += 1
            self._refusals.record_refusal(root, constraint)
        else:
            self._refused.setdefault(constraint, []).append(number)

    def record(self) -> None:
        """Add the trees of the refused classes to the refusals."""
        for constraint, classes in self._refused.items():
            assert self._tree_classes is not None
            self._refusals.record_refusals(self._tree_classes.of_classes(classes).slots(), constraint)
