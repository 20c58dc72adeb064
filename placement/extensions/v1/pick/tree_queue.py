"""The trees that may serve a query, the preferred one first.

Trees are compared by used shares in steps of 1/32, and equal ones are in random order.  Many workers that look at the
same snapshot therefore seldom take the same tree.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from placement.extensions.v1.pick.heaps import Entry, EvenHeaps, Heaps, OneHeap
from placement.extensions.v1.pick.sample import Samples
from placement.extensions.v1.pick.strategy import ROOT, Preference, Strategy
from placement.extensions.v1.pick.usage import TreeUsage
from placement.index.slots import SlotSet
from placement.search.narrow.narrowing import Narrowed
from placement.search.solver.problem import Candidate

#: Steps of the used share.
_STEPS = 32
#: What the steps of a used share are multiplied with: the least is preferred.
_SIGNS = {Preference.SPREAD: 1, Preference.PACK: -1, Preference.RANDOM: 0}


@dataclass(slots=True)
class Tally:
    """How many picks there were so far, by the root of the tree and by domain."""

    trees: Counter[int] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)


class TreeQueue:
    """A priority queue of trees."""

    def __init__(
        self,
        narrowed: Narrowed,
        roots: SlotSet,
        strategy: Strategy,
        tally: Tally,
        picks: int,
        generator: np.random.Generator,
    ) -> None:
        """Begin with all of the trees.

        Args:
            roots: Those of ``narrowed``, or some of them.
            tally: Counts the picks; other queues may count there, too.
            picks: How many trees are probably asked for.
            generator: Of what is left to chance.
        """
        self._sign = _SIGNS[strategy.preference]
        self._over_trees = strategy.spread_over == ROOT
        self._tally = tally
        self._generator = generator
        self._samples = Samples(narrowed, roots, strategy, picks, generator)
        self._heaps: Heaps = OneHeap()
        if strategy.spread_over is not None and not self._over_trees:
            self._heaps = EvenHeaps(strategy.domains(narrowed.snapshot), tally.domains)
        #: By root: the steps of its used share, and where its usage is.
        self._steps: dict[int, int] = {}
        self._usage: dict[int, tuple[TreeUsage, int]] = {}
        #: The ``chance`` of the last entry.
        self._last = 0.0

    def pop(self) -> int | None:
        """Remove and return the preferred tree; None if there is no other."""
        while (entry := self._heaps.pop()) is None:
            if not self._look_at_more():
                return None
        self._last = entry.chance
        return entry.root

    def push(self, root: int) -> None:
        """Put back a tree that was popped."""
        # The least of exponentially distributed numbers is each of them with the same probability, whenever it was
        # drawn, since the distribution has no memory.
        chance = self._last + self._generator.exponential()
        self._heaps.push(self._entry(root, self._steps[root], chance))

    def count(self, root: int, candidate: Candidate) -> None:
        """Count a pick in a tree that was popped."""
        self._tally.trees[root] += 1
        self._heaps.count(root)
        if root in self._usage:
            usage, place = self._usage[root]
            self._steps[root] = int(usage.add(place, root, candidate) * _STEPS)

    def _entry(self, root: int, steps: int, chance: float) -> Entry:
        by_use, by_picks = self._sign * steps, self._tally.trees[root]
        if self._over_trees:
            return Entry(by_picks, by_use, chance, root)
        return Entry(by_use, self._sign * by_picks, chance, root)

    def _look_at_more(self) -> bool:
        """Put trees that were not looked at into the queue; return False if there are none."""
        sample = self._samples.next()
        if sample is None:
            return False
        roots = sample.roots.tolist()
        steps = [0] * len(roots)
        if sample.usage is not None:
            steps = (sample.usage.shares() * _STEPS).astype(np.intp).tolist()
            self._usage.update(zip(roots, zip(itertools.repeat(sample.usage), itertools.count()), strict=False))
        self._steps.update(zip(roots, steps, strict=True))
        chances = self._generator.exponential(size=len(roots)) + self._last
        self._heaps.add(map(self._entry, roots, steps, chances.tolist()))
        return True
