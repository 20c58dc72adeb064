"""The places of one query: trees in the order of a strategy, and the first candidate of each that still fits.

The query is narrowed once.  Picks only ever use more, so that a provider or a tree that was refused stays refused, and
those that were not are judged by the solver with what was taken of them since.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.overlay import Own, UsageOverlay
from placement.extensions.v1.pick.combination import TreeCandidate, combination
from placement.extensions.v1.pick.sample import sample_size
from placement.extensions.v1.pick.strategy import Strategy
from placement.extensions.v1.pick.tree_queue import Tally, TreeQueue
from placement.index.slots import EMPTY, SlotSet
from placement.index.snapshot import SHARES
from placement.search.budget import Budget
from placement.search.narrow.narrowing import narrow
from placement.search.narrow.tree_problems import TreeProblems
from placement.search.query.query import SearchQuery
from placement.search.refusals import Refusals
from placement.search.solver.combine import SolutionCache, combine
from placement.search.solver.problem import Candidate, Requirements

#: After so many refused trees in a row the query is narrowed again, if anything was taken since; the next time after
#: twice as many.  One mask finds that a shared pool is used up, where each of its trees would be tried.
REFUSED = 32
#: Only a sample is narrowed if there are so many times as many trees, and if enough of it remain: so many and two for
#: each pick.
MANY, ENOUGH = 8, 8


class Area(NamedTuple):
    """Which trees may be picked, by the slots of their roots."""

    #: None: all.
    within: Collection[int] | None
    #: May grow.
    avoid: Collection[int]

    def has(self, root: int) -> bool:
        """Whether the tree may be picked now."""
        return root not in self.avoid and (self.within is None or root in self.within)

    @property
    def all(self) -> SlotSet | None:
        """Every root that may be in the area; None: all."""
        return None if self.within is None else _sorted(self.within)

    def of(self, roots: SlotSet) -> SlotSet:
        """Return those of the roots that are in the area, of which they are no more than ``all``."""
        return roots - _sorted(self.avoid) if self.avoid else roots


def _sorted(slots: Collection[int]) -> SlotSet:
    return SlotSet.sparse(np.array(sorted(slots), np.intp))


class PlaceSearch:
    """Finds places for equal requests, one after the other."""

    def __init__(
        self,
        query: SearchQuery,
        own: Own,
        overlay: UsageOverlay,
        area: Area,
        strategy: Strategy,
        tally: Tally,
        picks: int,
        budget: Budget,
        seed: int,
    ) -> None:
        """Narrow a sample of the trees, if there are many; all of them, if few of the sample remain.

        Args:
            own: What the consumers give up.
            overlay: What earlier picks took; picks of these places are added.
            tally: Counts the picks.
            picks: How many trees are needed, if every request gets its place.
            budget: Of the requests; the caller may give it more operations for each of them.
            seed: Of what is left to chance.

        Raises:
            Exhausted: The budget is used up.
        """
        self._query = query
        self._own = own
        self._overlay = overlay
        self._area = area
        self._strategy = strategy
        self._tally = tally
        self._picks = picks
        self.budget = budget
        self._generator = np.random.default_rng(seed)
        self._cache = SolutionCache(budget)
        #: The roots of trees without a candidate.
        self._refused: set[int] = set()
        #: How many in a row, and how many of them are enough to narrow again.
        self._misses, self._enough = 0, REFUSED
        #: The roots of trees that were popped for the present pick.
        self._popped: list[int] = []
        #: What a place has of each resource class.
        self.total = Requirements.of(query).total
        #: Whether only a sample of the trees was narrowed.
        self._sampled = False
        forest = overlay.snapshot({}).forest
        size = sample_size(picks)
        if area.within is None and strategy.may_sample and forest.all_roots.count > MANY * size:
            self._narrow(forest.sample(size, self._generator))
            self._sampled = self.roots.count >= ENOUGH + 2 * picks
        if not self._sampled:
            self._narrow(area.all)

    @property
    def may_borrow(self) -> bool:
        """Whether sharing providers can supply some demand."""
        return bool(self._shared)

    @property
    def gives_up(self) -> bool:
        """Whether the consumers give up something."""
        return bool(self._own)

    def _narrow(self, among: SlotSet | None) -> None:
        """Narrow the query with the present usage, among all trees or some."""
        self.snapshot = self._overlay.snapshot(self._own)
        self._changes = self._overlay.changes
        narrowed = self._narrowed = narrow(self._query, self.snapshot, self.budget, Refusals(), among)
        self.roots = self._area.of(narrowed.roots) - _sorted(self._refused) if narrowed.eligible else EMPTY
        self._problems = TreeProblems(narrowed, None, self.budget)
        demanded = zip(Requirements.of(self._query).demands, narrowed.eligible, strict=True)
        #: The demands that sharing providers can supply, each with these and the number of trees that can do without.
        self._shared = [
            (demand, one.sharing.slots().tolist(), self._count_of_roots(one.local - one.sharing))
            for demand, one in (demanded if narrowed.eligible else ())
            if one.sharing and demand.amounts
        ]
        self._queue = self.queue(self.roots)

    def look_everywhere(self) -> None:
        """Have all trees in ``roots``, not only those of a sample."""
        if self._sampled:
            self._sampled = False
            self._narrow(self._area.all)

    def queue(self, roots: SlotSet) -> TreeQueue:
        """Return some of the trees in the order of the strategy."""
        return TreeQueue(self._narrowed, roots, self._strategy, self._tally, self._picks, self._generator)

    def candidates(self, root: int) -> Iterator[Candidate]:
        """Return the candidates of a tree that fit now, for the consumer that has begun."""
        self.budget.spend(1 + len(self._narrowed.eligible))
        problem = self._overlay.remaining(self._problems.alone(root))
        return iter(()) if problem is None else combine(problem, self._cache)

    def begin_consumer(self) -> None:
        """Take what follows for another consumer."""
        self._overlay.begin_consumer(self._own)

    def pick(self, copies: int, dry: bool) -> list[TreeCandidate] | None:
        """Return candidates of so many different trees; None if there are not so many.

        Args:
            dry: Whether later picks need not know of this one.

        Raises:
            Exhausted: The budget is used up; nothing is taken.
        """
        self.begin_consumer()
        try:
            choices = self._one() if copies == 1 else self._several(copies)
            for choice in choices or ():
                if dry:
                    self._overlay.take(choice.candidate, -1)
                else:
                    self._queue.count(choice.root, choice.candidate)
        finally:
            for root in self._popped:
                self._queue.push(root)
            self._popped.clear()
        return choices

    def _pop(self) -> int | None:
        """Return the next tree, which is put back after the pick unless it is refused."""
        while (root := self._queue.pop()) is not None:
            if self._area.has(root):
                self._popped.append(root)
                break
        return root

    def _refuse(self) -> None:
        """Leave out the tree that was popped last."""
        self._refused.add(self._popped.pop())
        self._misses += 1

    def _one(self) -> list[TreeCandidate] | None:
        while True:
            root = self._pop()
            if root is None:
                if not self._sampled:
                    return None
                self.look_everywhere()
                continue
            candidate = next(self.candidates(root), None)
            if candidate is not None:
                self._overlay.take(candidate)
                self._misses = 0
                return [TreeCandidate(root, candidate)]
            self._refuse()
            if self._misses >= self._enough and self._overlay.changes != self._changes:
                self._misses, self._enough, self._sampled = 0, 2 * self._enough, False
                self._narrow(self._area.all)

    def _several(self, copies: int) -> list[TreeCandidate] | None:
        self.look_everywhere()
        if not self._may_have(copies):
            return None
        trees = self._popped

        def alternatives(choices: list[TreeCandidate]) -> Iterator[TreeCandidate]:
            for position in itertools.count(choices[-1].position + 1 if choices else 0):
                if position == len(trees) and self._pop() is None:
                    return
                yield from (TreeCandidate(trees[position], one, position) for one in self.candidates(trees[position]))

        return combination(copies, alternatives, self._is_contended, self._overlay, self.budget)

    def _may_have(self, copies: int) -> bool:
        """Whether there are enough trees and sharing providers for each demand by itself."""
        self.budget.spend(sum(len(sharing) for _, sharing, _ in self._shared))
        return self.roots.count >= copies and all(
            trees + sum(self._overlay.times(slot, demand.amounts) for slot in sharing) >= copies
            for demand, sharing, trees in self._shared
        )

    def _count_of_roots(self, providers: SlotSet) -> int:
        return (self.snapshot.forest.roots_of(providers) & self.roots).count

    def _is_contended(self, slot: int) -> bool:
        """Whether different trees can use the provider."""
        return SHARES in self.snapshot.provider(slot).traits
