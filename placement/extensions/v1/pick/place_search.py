"""The search for the places of one query: trees in the order of a strategy, and the first candidate in each that fits.

The query is narrowed once.  Picks only increase usage, so a refused provider or tree stays refused; the solver checks
the remaining trees against the usage after the earlier picks.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.overlay import ReleasedAmounts, UsageOverlay
from placement.extensions.v1.pick.combination import TreeCandidate, find_combination
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

#: Refused trees in a row after which the query is narrowed again if usage has changed; doubled each time.  Narrowing
#: removes all trees of an exhausted shared pool at once, instead of one by one.
REFUSED = 32
#: Ratio of trees to the sample size above which only a sample is narrowed; minimum number of trees, plus two per pick,
#: that must remain of the sample.
SAMPLE_RATIO, MIN_REMAINING = 8, 8


class Area(NamedTuple):
    """The trees that may be picked, by root slot."""

    #: Roots of the only trees; None for all.
    within: Collection[int] | None
    #: Roots to avoid; the collection may grow.
    avoid: Collection[int]

    def has(self, root: int) -> bool:
        """Whether the tree may currently be picked."""
        return root not in self.avoid and (self.within is None or root in self.within)

    @property
    def all_roots(self) -> SlotSet | None:
        """The roots in ``within``; None for all trees."""
        return None if self.within is None else _sorted_set(self.within)

    def pickable_roots(self, roots: SlotSet) -> SlotSet:
        """Return the roots that may currently be picked; ``roots`` must be a subset of ``all_roots``."""
        return roots - _sorted_set(self.avoid) if self.avoid else roots


def _sorted_set(slots: Collection[int]) -> SlotSet:
    return SlotSet.sparse(np.array(sorted(slots), np.intp))


class PlaceSearch:
    """A search for places for equal requests, one after the other."""

    def __init__(
        self,
        query: SearchQuery,
        released: ReleasedAmounts,
        overlay: UsageOverlay,
        area: Area,
        strategy: Strategy,
        tally: Tally,
        picks: int,
        budget: Budget,
        seed: int,
    ) -> None:
        """Narrow a sample of many trees, or all trees if they are few or too few of the sample remain.

        Args:
            released: The amounts that the consumers release.
            overlay: The usage after earlier picks; the picks of this search are added.
            tally: The numbers of earlier picks; the picks of this search are counted in it.
            picks: Number of trees needed if every request gets its place.
            budget: The budget of the requests; the caller may add operations for each request.
            seed: The seed of the random generator.

        Raises:
            Exhausted: The budget is exhausted.
        """
        self._query = query
        self._released = released
        self._overlay = overlay
        self._area = area
        self._strategy = strategy
        self._tally = tally
        self._picks = picks
        self.budget = budget
        self._generator = np.random.default_rng(seed)
        self._cache = SolutionCache(budget)
        #: Roots of trees without a candidate.
        self._refused: set[int] = set()
        #: Refused trees in a row; number of refused trees after which the query is narrowed again.
        self._misses, self._max_misses = 0, REFUSED
        #: Roots of the trees popped for the current pick.
        self._popped: list[int] = []
        #: The total amounts of a place by resource class.
        self.total = Requirements.from_query(query).total
        #: Whether only a sample of the trees was narrowed.
        self._sampled = False
        forest = overlay.snapshot({}).forest
        size = sample_size(picks)
        if area.within is None and strategy.may_sample and forest.all_roots.count > SAMPLE_RATIO * size:
            self._narrow(forest.sample(size, self._generator))
            self._sampled = self.roots.count >= MIN_REMAINING + 2 * picks
        if not self._sampled:
            self._narrow(area.all_roots)

    @property
    def may_use_sharing(self) -> bool:
        """Whether sharing providers can supply some demand."""
        return bool(self._shared)

    @property
    def releases(self) -> bool:
        """Whether the consumers release anything."""
        return bool(self._released)

    def _narrow(self, tree_roots: SlotSet | None) -> None:
        """Narrow the query with the current usage, in all trees or in some."""
        self.snapshot = self._overlay.snapshot(self._released)
        self._changes = self._overlay.changes
        narrowed = self._narrowed = narrow(self._query, self.snapshot, self.budget, Refusals(), tree_roots)
        self.roots = (
            self._area.pickable_roots(narrowed.roots) - _sorted_set(self._refused) if narrowed.eligible else EMPTY
        )
        self._problems = TreeProblems(narrowed, None, self.budget)
        demanded = zip(Requirements.from_query(self._query).demands, narrowed.eligible, strict=True)
        #: Demands that sharing providers can supply, each with these providers and the number of trees that do not need
        #: them.
        self._shared = [
            (demand, eligible.sharing.slots().tolist(), self._count_of_roots(eligible.local - eligible.sharing))
            for demand, eligible in (demanded if narrowed.eligible else ())
            if eligible.sharing and demand.amounts
        ]
        self._queue = self.queue(self.roots)

    def narrow_all_trees(self) -> None:
        """Narrow all trees, if only a sample was narrowed so far."""
        if self._sampled:
            self._sampled = False
            self._narrow(self._area.all_roots)

    def queue(self, roots: SlotSet) -> TreeQueue:
        """Return a queue of trees in the order of the strategy."""
        return TreeQueue(self._narrowed, roots, self._strategy, self._tally, self._picks, self._generator)

    def candidates(self, root: int) -> Iterator[Candidate]:
        """Return the candidates in a tree that fit the current consumer at the current usage."""
        self.budget.spend(1 + len(self._narrowed.eligible))
        problem = self._overlay.reduced_problem(self._problems.complete_problem(root))
        return iter(()) if problem is None else combine(problem, self._cache)

    def begin_consumer(self) -> None:
        """Start the picks of the next consumer."""
        self._overlay.begin_consumer(self._released)

    def pick(self, copies: int, dry_run: bool) -> list[TreeCandidate] | None:
        """Return one candidate for each copy, in different trees; None if too few trees have room.

        Args:
            dry_run: Whether later picks may take the same place.

        Raises:
            Exhausted: The budget is exhausted; the overlay is unchanged.
        """
        self.begin_consumer()
        try:
            choices = self._pick_one() if copies == 1 else self._pick_copies(copies)
            for choice in choices or ():
                if dry_run:
                    self._overlay.take(choice.candidate, -1)
                else:
                    self._queue.count(choice.root, choice.candidate)
        finally:
            for root in self._popped:
                self._queue.push(root)
            self._popped.clear()
        return choices

    def _pop(self) -> int | None:
        """Return the next tree; it returns to the queue after the pick unless it is refused."""
        while (root := self._queue.pop()) is not None:
            if self._area.has(root):
                self._popped.append(root)
                break
        return root

    def _refuse(self) -> None:
        """Drop the tree that was popped last."""
        self._refused.add(self._popped.pop())
        self._misses += 1

    def _pick_one(self) -> list[TreeCandidate] | None:
        while True:
            root = self._pop()
            if root is None:
                if not self._sampled:
                    return None
                self.narrow_all_trees()
                continue
            candidate = next(self.candidates(root), None)
            if candidate is not None:
                self._overlay.take(candidate)
                self._misses = 0
                return [TreeCandidate(root, candidate)]
            self._refuse()
            if self._misses >= self._max_misses and self._overlay.changes != self._changes:
                self._misses, self._max_misses, self._sampled = 0, 2 * self._max_misses, False
                self._narrow(self._area.all_roots)

    def _pick_copies(self, copies: int) -> list[TreeCandidate] | None:
        self.narrow_all_trees()
        if not self._may_fit(copies):
            return None
        trees = self._popped

        def alternatives(choices: list[TreeCandidate]) -> Iterator[TreeCandidate]:
            for position in itertools.count(choices[-1].position + 1 if choices else 0):
                if position == len(trees) and self._pop() is None:
                    return
                root = trees[position]
                yield from (TreeCandidate(root, candidate, position) for candidate in self.candidates(root))

        return find_combination(copies, alternatives, self._is_contended, self._overlay, self.budget)

    def _may_fit(self, copies: int) -> bool:
        """Whether the remaining trees and sharing providers are enough for each demand on its own."""
        self.budget.spend(sum(len(sharing) for _, sharing, _ in self._shared))
        return self.roots.count >= copies and all(
            trees + sum(self._overlay.times(slot, demand.amounts) for slot in sharing) >= copies
            for demand, sharing, trees in self._shared
        )

    def _count_of_roots(self, providers: SlotSet) -> int:
        return (self.snapshot.forest.roots_of(providers) & self.roots).count

    def _is_contended(self, slot: int) -> bool:
        """Whether several trees can use the provider."""
        return SHARES in self.snapshot.provider(slot).traits
