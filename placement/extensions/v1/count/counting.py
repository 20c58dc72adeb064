"""The count of all trees of a narrowed query, and what those have together that use the same sharing providers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from placement.extensions.v1.count.closed import Least, bounds, flat, separable
from placement.extensions.v1.count.placing import Placing, Taken
from placement.extensions.v1.count.programs import Programs
from placement.extensions.v1.count.shapes import Shape, Shapes
from placement.extensions.v1.count.sharing import Sharing
from placement.extensions.v1.count.supply import MOST, Supply, kinds_of
from placement.index.slots import Slots, SlotSet
from placement.search.budget import Budget
from placement.search.narrow.narrowing import Narrowed
from placement.search.refusals import COMBINATION
from placement.search.solver.problem import Requirements

#: One operation of the budget counts so many trees by arithmetic; an aggregate with trees that contend takes so many.
_AT_ONCE, _AGGREGATE = 100, 30
#: Bytes for a member of an aggregate.
_MEMBER = 48
#: Beyond it sums of floats are not exact.
_MOST_SUM = 2**53
#: One tree is counted first, then so many times as many, up to so many at once.
_GROWTH, _MOST_TREES = 8, 4096
#: A tree that was not counted.
_UNCOUNTED = -1


class Counting:
    """A count in progress; when the budget is used up, what is counted so far is the result."""

    def __init__(self, narrowed: Narrowed, budget: Budget, until: int | None) -> None:
        self._narrowed = narrowed
        self._snapshot = snapshot = narrowed.snapshot
        self._forest = snapshot.forest
        self._budget = budget
        self._until = until
        self._requirements = requirements = Requirements.of(narrowed.query)
        self._kinds = kinds_of(narrowed, requirements)
        self._supply = Supply(snapshot, requirements.total)
        self._separable = separable(requirements, self._kinds)
        self._sharing = Sharing(narrowed, requirements, self._kinds, self._supply, budget)
        self._shapes = Shapes(narrowed, requirements, self._supply, self._sharing.roots, budget)
        self._placing = Placing(requirements, self._supply, budget)
        self._programs = Programs(
            narrowed, requirements, self._kinds, self._supply, self._shapes, self._placing, budget
        )
        #: A number that no way to place exceeds.
        self.bound = 0
        #: How many could be placed in the trees that were added, and in the tree with most if it had all for itself.
        self._sum = self._most = 0
        #: Whether placing was needed, and whether sharing providers were in it.
        self.placed = self.shared = False
        #: Of each tree as if nothing was placed elsewhere, by the slot of its root: the count, a number that no way to
        #: place exceeds, and the position of the rule that ends it in ``_rules``.
        self._counts = np.full(snapshot.size, _UNCOUNTED, np.int64)
        self._bounds = np.zeros(snapshot.size, np.int64)
        self._endings = np.zeros(snapshot.size, np.int64)
        self._rules = [COMBINATION]
        #: The trees whose sharing providers have too little for all of them, and the rules that end these together.
        self._contending = np.zeros(snapshot.size, np.bool_)
        self._contended: Counter[str] = Counter()
        #: The sharing providers and the trees of each contention.
        self._components: list[tuple[Slots, Slots]] = []

    @property
    def total(self) -> int:
        """How many could be placed, as far as it was counted: no less than what one tree has alone."""
        return max(self._sum, self._most)

    @property
    def rounded(self) -> bool:
        """Whether amounts or counts are too large to be exact."""
        most = self._most * max(kind.times for kind in self._kinds)
        return self._supply.rounded or most >= MOST or max(self.total, self.bound) >= _MOST_SUM

    @property
    def reached(self) -> bool:
        """Whether ``until`` is reached."""
        return self._until is not None and self.total >= self._until

    # --- trees ---

    def run(self) -> None:
        """Count all trees: those without sharing providers first, by arithmetic where that is exact.

        Raises:
            Exhausted: The budget is used up.
        """
        alone = (self._narrowed.roots - self._sharing.roots).slots()
        nested = np.zeros(self._snapshot.size, np.bool_)
        nested[self._forest.roots(self._forest.children)] = True
        single, several = alone[~nested[alone]], alone[nested[alone]]
        self._record(single, flat(self._snapshot, self._requirements, self._supply, single))
        self._add(single)
        if self._separable:
            self._count_by_arithmetic(several)
            self._add(several)
        else:
            self._count_by_programs(several, together=True)
        if not self.reached and self._sharing.roots:
            self._count_sharing()

    def _add(self, roots: Slots) -> None:
        """Add trees that take nothing from each other to the total."""
        self._sum += int(np.maximum(self._counts[roots], 0).sum())
        self.bound += int(self._bounds[roots].sum())

    def _record(self, roots: Slots, least: Least) -> None:
        """Record counts by arithmetic."""
        self._budget.spend(len(roots) // _AT_ONCE)
        positions = np.array([self._position(rule) for rule in least.rules], np.int64)
        self._counts[roots] = self._bounds[roots] = least.counts
        self._most = max(self._most, int(least.counts.max(initial=0)))
        self._endings[roots] = positions[least.ending] if len(roots) else 0

    def _position(self, rule: str) -> int:
        if rule not in self._rules:
            self._rules.append(rule)
        return self._rules.index(rule)

    def _count_by_arithmetic(self, roots: Slots) -> None:
        """Count trees of separable demands, each with all of the sharing providers that it uses."""
        at_once = self._sharing.trees_at_once
        for start in range(0, len(roots), at_once):
            if self.reached:
                return
            self._count_at_once(roots[start : start + at_once])

    def _count_at_once(self, roots: Slots) -> None:
        among = SlotSet.of(roots, self._snapshot.size)
        number = np.full(self._snapshot.size, -1, np.intp)
        number[roots] = np.arange(len(roots))
        domains = []
        for kind in self._kinds:
            local, (shared, users) = kind.eligible.local.slots(), self._sharing.domain(kind, among)
            slots = np.concatenate([local, shared])
            trees = number[np.concatenate([self._forest.roots(local), users])]
            domains.append((slots[trees >= 0], trees[trees >= 0]))
        self._record(roots, bounds(self._requirements, self._kinds, self._supply, domains, len(roots)))

    def _count_by_programs(self, roots: Slots, together: bool) -> None:
        """Count trees whose demands depend on each other.

        Args:
            together: Whether they take nothing from each other, and are added to the total.
        """
        for some in self._chunks(roots):
            for shape in self._shapes.of(some):
                if self.reached:
                    return
                self.placed = True
                self._count_shape(shape, together)

    def _chunks(self, roots: Slots) -> Iterator[Slots]:
        """Yield few of the roots, then more and more: few may reach ``until``, or use up the budget."""
        start, length = 0, 1
        while start < len(roots):
            yield roots[start : start + length]
            start, length = start + length, min(length * _GROWTH, _MOST_TREES)

    def _count_shape(self, shape: Shape, together: bool) -> None:
        placed = self._programs.count(shape)
        self._counts[shape.roots], self._bounds[shape.roots] = placed.times, placed.bounds
        self._most = max(self._most, int(placed.times.max()))
        if together:
            self._add(shape.roots)
        self._endings[shape.roots] = [self._position(rule) for rule in self._programs.endings(shape, placed)]

    # --- sharing providers ---

    def _count_sharing(self) -> None:
        """Count the trees that use sharing providers, each alone and then together."""
        self.shared = True
        roots = self._sharing.roots.slots()
        if self._separable:
            self._count_by_arithmetic(roots)
        else:
            self._count_by_programs(roots, together=False)
        if self.reached:
            return
        for providers, users in self._sharing.connected():
            if self.reached:
                return
            if self._sharing.enough(int(self._counts[users].sum()), providers):
                self._add(users)
                continue
            self.placed = True
            least = self._sharing.bound(users, self._bounds[users], providers)
            bound = min(int(least.counts[0]), int(self._bounds[users].sum()))
            self._contending[users] = True
            self._contended[least.rules[least.ending[0]]] += len(users)
            self._components.append((providers, users))
            solved = self._programs.together(users)
            if solved is not None:
                self._sum += solved[0]
                self.bound += min(bound, solved[1])
                continue
            self.bound += bound
            for times in self._together(users, bound):
                self._sum += times
                if self.reached:
                    return

    def _together(self, roots: Slots, most: int) -> Iterator[int]:
        """Yield how many are placed in each tree, one after another, until there are ``most`` or a few more."""
        taken, total = Taken(), 0
        for root in roots.tolist():
            if total >= most:
                break
            times, _ = self._placing.place(self._shapes.problem(root), taken)
            total += times
            yield times

    # --- the result ---

    def trees(self) -> tuple[list[int], list[int], list[str]]:
        """Return the trees with at least one, most first: slots of roots, counts, and the rules that end them."""
        roots = np.flatnonzero(self._counts > 0)
        roots = roots[np.argsort(-self._counts[roots], kind="stable")]
        endings = [self._rules[position] for position in self._endings[roots].tolist()]
        return roots.tolist(), self._counts[roots].tolist(), endings

    def ending(self) -> str:
        """Return the rule that ends the count in most trees; of several such rules the first of the query."""
        counted = (self._counts >= 0) & ~self._contending
        numbers = np.bincount(self._endings[counted], minlength=len(self._rules)).tolist()
        times = Counter(dict(zip(self._rules, numbers, strict=True))) + self._contended
        return next((rule for rule, _ in times.most_common(1)), COMBINATION)

    def aggregates(self) -> list[tuple[str, int]]:
        """Return how many could be placed in the trees with a member in each aggregate, most first.

        Raises:
            Exhausted: The budget is used up.
        """
        sets = self._snapshot.aggregates
        members = sum(each.count for each in sets.values())
        self._budget.spend(len(sets) + members // _AT_ONCE)
        self._budget.hold(members * _MEMBER)
        slots = [np.empty(0, np.intp), *(each.slots() for each in sets.values())]
        numbers = np.repeat(np.arange(len(sets)), [len(each) for each in slots[1:]])
        # Each aggregate with each of its trees once, by aggregate.
        pairs = np.unique(numbers * self._snapshot.size + self._forest.roots(np.concatenate(slots)))
        numbers, roots = np.divmod(pairs, self._snapshot.size)
        counts = np.zeros(len(sets), np.int64)
        np.add.at(counts, numbers, np.where(self._contending[roots], 0, np.maximum(self._counts[roots], 0)))
        contending = np.unique(numbers[self._contending[roots]])
        first, end = np.searchsorted(numbers, contending), np.searchsorted(numbers, contending, side="right")
        for number, start, stop in zip(contending.tolist(), first.tolist(), end.tolist(), strict=True):
            counts[number] += self._count_contending(roots[start:stop])
        found = [(name, count) for name, count in zip(sets, counts.tolist(), strict=True) if count]
        return sorted(found, key=lambda each: (-each[1], each[0]))

    def _count_contending(self, roots: Slots) -> int:
        """Return what those of the trees that contend for sharing providers have together."""
        count, roots = 0, roots[self._counts[roots] > 0]
        for providers, users in self._components:
            self._budget.spend(_AGGREGATE + len(users) // _AT_ONCE)
            inside = np.intersect1d(roots, users, assume_unique=True)
            if len(inside):
                count += self._count_inside(inside, providers)
        return count

    def _count_inside(self, roots: Slots, providers: Slots) -> int:
        """Return what some of the trees that contend for sharing providers have together."""
        alone = int(self._counts[roots].sum())
        if self._sharing.enough(alone, providers):
            return alone
        if (solved := self._programs.together(roots)) is not None:
            return solved[0]
        bound = int(self._sharing.bound(roots, self._bounds[roots], providers).counts[0])
        return sum(self._together(roots, min(alone, bound)))
