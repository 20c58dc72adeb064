"""The count of all trees of a narrowed query together, and of the trees in each aggregate.

A job is one consumer with all its copies; without copies, jobs are placements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from placement.extensions.v1.count.inputs import MAX_COPIES, Bools, CountInputs, Integers
from placement.extensions.v1.count.placer import Placer
from placement.extensions.v1.count.shape_counter import ShapeCounter
from placement.extensions.v1.count.shapes import Shapes
from placement.extensions.v1.count.sharing import SharingProviders
from placement.extensions.v1.count.upper_bounds import (
    TightestBound,
    bisect_largest,
    full_rounds,
    is_separable,
    single_provider_counts,
    upper_bounds,
)
from placement.index.slots import Slots, SlotSet
from placement.search.budget import Budget
from placement.search.narrow.narrowing import Narrowed
from placement.search.refusals import COMBINATION

#: The limiting rule if there is room for more copies, but in too few different trees.
DIFFERENT_TREES = "count"

#: Trees counted by arithmetic per operation; operations per aggregate with contending trees.
_TREES_PER_OPERATION, _AGGREGATE = 100, 30
#: Bytes per member of an aggregate.
_MEMBER = 48
#: Sums of floats are exact up to this number.
_MAX_SUM = 2**53
#: Growth factor of the batches of trees, which start with one tree; maximum batch size.
_GROWTH, _MAX_BATCH = 8, 4096
#: The mark of trees that were not counted.
_UNCOUNTED = -1


class TotalCounter:
    """A count in progress.  If the budget runs out, the result is the count so far.

    Attributes:
        total: The count so far.
        bound: An upper bound; meaningless if the count was cut short.
        shared: Whether trees contend for sharing providers.
    """

    def __init__(self, narrowed: Narrowed, budget: Budget, copies: int, until: int | None) -> None:
        self._snapshot = snapshot = narrowed.snapshot
        self._forest = snapshot.forest
        self._budget = budget
        self._copies = copies
        self._until = until
        self._inputs = CountInputs(narrowed, budget)
        self._sharing = SharingProviders(self._inputs)
        self._shapes = Shapes(self._inputs, self._sharing.roots)
        self._placer = Placer(self._inputs)
        self._shape_counter = ShapeCounter(self._inputs, self._placer)
        self.total = self.bound = 0
        self.shared = False
        #: The count, an upper bound, and the position of the limiting rule in the rules of the inputs, by root slot,
        #: as if nothing were placed in other trees.
        self._counts = np.full(snapshot.size, _UNCOUNTED, np.int64)
        self._bounds = np.zeros(snapshot.size, np.int64)
        self._rules = np.zeros(snapshot.size, np.int64)
        #: Whether a tree may contend for sharing providers, by root slot.
        self._contending = np.zeros(snapshot.size, np.bool_)
        #: Number of contending trees, by the position of the rule that limits their counts.
        self._contended: Counter[int] = Counter()
        #: Sets of sharing providers, each with the roots of the trees that contend for it.
        self._contentions: list[tuple[Slots, Slots]] = []

    @property
    def rounded(self) -> bool:
        """Whether amounts or counts are too large to be exact."""
        largest_copies = int(self._counts.max(initial=0)) * max(kind.times for kind in self._inputs.kinds)
        return self._inputs.rounded or largest_copies >= MAX_COPIES or max(self.total, self.bound) >= _MAX_SUM

    @property
    def reached(self) -> bool:
        """Whether ``until`` is reached."""
        return self._until is not None and self.total >= self._until

    # --- trees ---

    def run(self) -> None:
        """Count all trees, starting with trees that use no sharing provider; by arithmetic where that is exact.

        Raises:
            Exhausted: The budget is exhausted.
        """
        independent = (self._inputs.narrowed.roots - self._sharing.roots).slots()
        is_lone = self._forest.is_lone[independent]
        lone_roots, other_roots = independent[is_lone], independent[~is_lone]
        sharing_roots = self._sharing.roots.slots()
        self._contending[sharing_roots] = True
        try:
            self._record(lone_roots, single_provider_counts(self._inputs, lone_roots))
            for roots in (other_roots, sharing_roots):
                self._count(roots)
            if not self.reached and len(sharing_roots):
                self._find_contentions()
        finally:
            self._add_up()
        if not self.reached:
            self.total, self.bound = self._jobs(np.arange(self._snapshot.size))

    def _add_up(self) -> None:
        """Set the total to the count that is certain without placing anything."""
        counts = np.maximum(self._counts, 0)
        self.total = _different_trees(
            lambda per_tree: int(np.minimum(counts[~self._contending], per_tree).sum()), self._copies
        )
        if self._copies == 1:
            self.total = max(self.total, int(counts.max(initial=0)))

    def _count(self, roots: Slots) -> None:
        if not is_separable(self._inputs):
            self._count_shapes(roots)
            return
        batch_size = self._sharing.trees_at_once
        for start in range(0, len(roots), batch_size):
            self._add_up()
            if self.reached:
                return
            self._count_separable(roots[start : start + batch_size])

    def _record(self, roots: Slots, bound: TightestBound) -> None:
        """Record counts by arithmetic."""
        self._budget.spend(len(roots) // _TREES_PER_OPERATION)
        self._counts[roots] = self._bounds[roots] = bound.counts
        self._rules[roots] = bound.rules

    def _count_separable(self, roots: Slots) -> None:
        """Count trees with separable demands, each with all the sharing providers that it uses."""
        tree_roots = SlotSet.from_slots(roots, self._snapshot.size)
        number = np.full(self._snapshot.size, -1, np.intp)
        number[roots] = np.arange(len(roots))
        domains = []
        for kind in self._inputs.kinds:
            local, (shared, users) = kind.eligible.local.slots(), self._sharing.domain(kind, tree_roots)
            slots = np.concatenate([local, shared])
            trees = number[np.concatenate([self._forest.roots(local), users])]
            domains.append((slots[trees >= 0], trees[trees >= 0]))
        self._record(roots, upper_bounds(self._inputs, domains, len(roots)))

    def _count_shapes(self, roots: Slots) -> None:
        """Count trees whose demands depend on each other."""
        for batch in self._batches(roots):
            for shape in self._shapes.shapes_of(batch):
                self._add_up()
                if self.reached:
                    return
                (self._counts[shape.roots], self._bounds[shape.roots]), rules = self._shape_counter.count(shape)
                self._rules[shape.roots] = rules

    def _batches(self, roots: Slots) -> Iterator[Slots]:
        """Yield the roots in growing batches: a few may already reach ``until``, or use up the budget."""
        start, length = 0, 1
        while start < len(roots):
            yield roots[start : start + length]
            start, length = start + length, min(length * _GROWTH, _MAX_BATCH)

    # --- sharing providers ---

    def _find_contentions(self) -> None:
        """Find the trees whose sharing providers lack the capacity for all of them."""
        for providers, users in self._sharing.connected_components():
            if self._sharing.suffices(int(self._counts[users].sum()), providers):
                self._contending[users] = False
                continue
            self.shared = True
            bound = self._sharing.bound(users, self._bounds[users], providers)
            self._contended[bound.rules.item(0)] += len(users)
            self._contentions.append((providers, users))

    def _contending_count(self, roots: Slots, providers: Slots, per_tree: int) -> tuple[int, int]:
        """Return the count of trees that contend for sharing providers, and an upper bound.

        Args:
            per_tree: Maximum number of placements in one tree.
        """
        counts, bounds = np.minimum(self._counts[roots], per_tree), np.minimum(self._bounds[roots], per_tree)
        total_bound = min(int(self._sharing.bound(roots, bounds, providers).counts[0]), int(bounds.sum()))
        if self._sharing.suffices(int(counts.sum()), providers):
            return int(counts.sum()), total_bound
        total = 0
        for order in (roots, roots[::-1]):
            if total < total_bound:
                total = max(total, self._placer.place(order.tolist(), per_tree, total_bound))
        return total, total_bound

    # --- result ---

    def _jobs(self, roots: Slots) -> tuple[int, int]:
        """Return the number of jobs that fit, each with its copies in different trees, and an upper bound."""
        roots = roots[self._counts[roots] >= 0]
        independent = roots[~self._contending[roots]]
        counts, limits = self._counts[independent], self._bounds[independent]
        groups = [
            (contending, providers)
            for providers, users in self._contentions
            if len(contending := np.intersect1d(roots, users, assume_unique=True))
        ]

        def count_copies(per_tree: int) -> tuple[int, int]:
            """Return the number of copies that fit with at most ``per_tree`` per tree, and an upper bound."""
            self._budget.spend(len(independent) // _TREES_PER_OPERATION + len(groups) * _AGGREGATE)
            pairs = [self._contending_count(contending, providers, per_tree) for contending, providers in groups]
            low = int(np.minimum(counts, per_tree).sum()) + sum(placed for placed, _ in pairs)
            return low, int(np.minimum(limits, per_tree).sum()) + sum(bound for _, bound in pairs)

        if self._copies == 1:
            return count_copies(MAX_COPIES)
        return (
            _different_trees(lambda per_tree: count_copies(per_tree)[0], self._copies),
            _different_trees(lambda per_tree: count_copies(per_tree)[1], self._copies),
        )

    def trees(self) -> tuple[list[int], list[int], list[str]]:
        """Return the trees with room, largest count first: slots of roots, counts, and limiting rules."""
        roots = np.flatnonzero(self._counts > 0)
        roots = roots[np.argsort(-self._counts[roots], kind="stable")]
        rules = [self._inputs.rules[position] for position in self._rules[roots].tolist()]
        return roots.tolist(), self._counts[roots].tolist(), rules

    def limiting_rule(self) -> str:
        """Return the rule that limits the count in most trees; in a tie, the first rule of the query."""
        if self._copies > 1 and self.total < int(np.maximum(self._counts, 0).sum()) // self._copies and not self.shared:
            return DIFFERENT_TREES
        counted = (self._counts >= 0) & ~self._contending
        times = Counter(dict(enumerate(np.bincount(self._rules[counted]).tolist()))) + self._contended
        return next((self._inputs.rules[position] for position, _ in times.most_common(1)), COMBINATION)

    def aggregates(self) -> list[tuple[str, int]]:
        """Return, by aggregate, the number of jobs that fit in the trees with a member in it, largest first.

        Raises:
            Exhausted: The budget is exhausted.
        """
        sets = self._snapshot.aggregates
        members = sum(providers.count for providers in sets.values())
        self._budget.spend(len(sets) + members // _TREES_PER_OPERATION)
        self._budget.hold(members * _MEMBER)
        slots = [np.empty(0, np.intp), *(providers.slots() for providers in sets.values())]
        numbers = np.repeat(np.arange(len(sets)), [len(aggregate_slots) for aggregate_slots in slots[1:]])
        # Pairs of an aggregate and a tree with a member in it, each once, sorted by aggregate.
        pairs = np.unique(numbers * self._snapshot.size + self._forest.roots(np.concatenate(slots)))
        numbers, roots = np.divmod(pairs, self._snapshot.size)
        copies = np.maximum(self._counts[roots], 0)
        counts = full_rounds(copies, np.ones_like(copies), self._copies, numbers, len(sets))
        contending = np.unique(numbers[self._contending[roots]])
        first, end = np.searchsorted(numbers, contending), np.searchsorted(numbers, contending, side="right")
        for number, start, stop in zip(contending.tolist(), first.tolist(), end.tolist(), strict=True):
            counts[number] = self._jobs(roots[start:stop])[0]
        positive = [(name, count) for name, count in zip(sets, counts.tolist(), strict=True) if count]
        return sorted(positive, key=lambda pair: (-pair[1], pair[0]))


def _different_trees(sum_of: Callable[[int], int], copies: int) -> int:
    """Return the number of jobs that fit if the copies of each must be in different trees.

    n jobs fit if and only if the trees have room for ``copies * n`` copies, where each tree counts for at most n of
    them (the rule of ``upper_bounds.full_rounds``).

    Args:
        sum_of: A function that returns the sum of the counts of all trees, each capped at its argument.
    """
    max_jobs = sum_of(MAX_COPIES) // copies
    if copies == 1:
        return max_jobs

    def fit(jobs: Integers) -> Bools:
        return np.array([sum_of(jobs.item()) >= copies * jobs.item()])

    return bisect_largest(np.array([max_jobs]), fit).item()
