"""A priority queue of trees: which one is tried next.

Scoring a hundred thousand trees for one pick would cost more than all the rest.  So a pick that spreads looks at a
random sample, and takes the best of it: the "power of d choices" (Mitzenmacher, "The power of two choices in randomized
load balancing", IEEE TPDS 12, 2001; Sparrow, Ousterhout et al., SOSP 2013, uses it for schedulers).  With d in the
hundreds the result is among the best percent.  The rest is looked at when the sample has no room.  A pick that packs
scores all trees, because the few that are in use are missed by most samples.

Trees are compared by used shares in steps of 1/32, and equal ones are in random order.  Many workers that look at the
same snapshot therefore seldom take the same tree.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

import numpy as np

from placement.index.slots import Slots, SlotSet
from placement.search.narrow.narrowing import Narrowed
from placement.search.pick.strategy import Preference, Strategy
from placement.search.pick.usage import TreeUsage
from placement.search.solver.problem import Candidate

#: Steps of the used share.
_STEPS = 32
#: The size of a sample: this, and so many for each pick that is wanted.
_SAMPLE, _PER_PICK = 256, 4
#: When a sample has no room, the next one is so many times as large.
_GROWTH = 4


class _Entry(NamedTuple):
    """A tree in the queue; the least entry is popped first."""

    #: Picks in the domains of the tree; infinite if it has none.
    in_domains: float
    #: Of its used share, negative for a strategy that packs.
    steps: int
    #: Picks in the tree, negative for a strategy that packs.
    picks: int
    chance: float
    root: int


@dataclass(slots=True)
class Tally:
    """How many picks there were so far, by the root of the tree and by domain."""

    trees: Counter[int] = field(default_factory=Counter)
    domains: Counter[Hashable] = field(default_factory=Counter)


class TreeQueue:
    """The trees that may serve a query, the preferred one first."""

    def __init__(
        self, narrowed: Narrowed, roots: SlotSet, strategy: Strategy, tally: Tally, picks: int, seed: int
    ) -> None:
        """Begin with all of the trees.

        Args:
            roots: Those of ``narrowed``, or some of them.
            tally: Counts the picks; other queues may count there, too.
            picks: How many trees are probably asked for.
            seed: Of what is left to chance.
        """
        self._narrowed = narrowed
        self._strategy = strategy
        self._sign = {Preference.SPREAD: 1, Preference.PACK: -1, Preference.RANDOM: 0}[strategy.preference]
        self._tally = tally
        #: The trees that were not looked at.
        self._rest = roots.slots()
        self._sample = _SAMPLE + _PER_PICK * picks
        self._random = random.Random(seed)
        self._generator = np.random.default_rng(seed)
        self._queue: list[_Entry] = []
        #: By root: the usage of some trees, and the index of this one among them.
        self._usage: dict[int, tuple[TreeUsage, int]] = {}
        self._steps: dict[int, int] = {}
        self._domains: dict[int, tuple[Hashable, ...]] = {}
        #: The ``chance`` of the last entry.
        self._last = 0.0

    def pop(self) -> int | None:
        """Remove and return the preferred tree; None if there is no other."""
        while self._queue or self._look_at_more():
            first = self._queue[0]
            now = self._picks_in_domains(first.root)
            if now != first.in_domains:
                # Picks in other trees of its domains came in between.
                heapreplace(self._queue, first._replace(in_domains=now))
                continue
            self._last = first.chance
            return heappop(self._queue).root
        return None

    def push(self, root: int) -> None:
        """Put back a tree that was popped."""
        # The minimum of exponential distributions, which have no memory, is each of them with the same probability,
        # whenever it was drawn.
        chance = self._last + self._random.expovariate(1)
        heappush(self._queue, self._entry(root, self._steps[root], chance))

    def count(self, root: int, candidate: Candidate) -> None:
        """Count a pick in a tree that was popped."""
        self._tally.trees[root] += 1
        self._tally.domains.update(self._domains_of(root))
        if self._sign:
            usage, place = self._usage[root]
            usage.add(place, root, candidate)
            self._steps[root] = int(usage.share(place) * _STEPS)

    def _entry(self, root: int, steps: int, chance: float) -> _Entry:
        picks = self._tally.trees[root] if self._tally.trees else 0
        return _Entry(self._picks_in_domains(root), self._sign * steps, self._sign * picks, chance, root)

    def _domains_of(self, root: int) -> tuple[Hashable, ...]:
        if self._strategy.spread_over is None:
            return ()
        domains = self._domains.get(root)
        if domains is None:
            domains = self._domains[root] = tuple(self._strategy.domains(self._narrowed.snapshot, root))
        return domains

    def _picks_in_domains(self, root: int) -> float:
        """Return what the sum of squares of the picks in each domain would grow by, if the tree were picked.

        The sum is least where picks are distributed evenly.
        """
        if self._strategy.spread_over is None:
            return 0
        domains = self._domains_of(root)
        return sum(self._tally.domains[domain] for domain in domains) if domains else math.inf

    # --- looking at trees ---

    def _look_at_more(self) -> bool:
        """Put some of the trees that were not looked at into the queue; return False if there are none."""
        if not len(self._rest):
            return False
        if self._strategy.preference == Preference.PACK:
            roots, steps = self._most_used()
        else:
            roots, steps = self._sampled()
        self._sample *= _GROWTH
        chances = self._generator.exponential(size=len(roots)) + self._last
        roots_and_steps = list(zip(roots.tolist(), steps.tolist(), strict=True))
        self._steps.update(roots_and_steps)
        self._queue = list(map(self._entry, *zip(*roots_and_steps, strict=True), chances.tolist()))
        heapify(self._queue)
        return True

    def _sampled(self) -> tuple[Slots, Slots]:
        """Return the roots of a sample of the trees, and the steps of their used shares."""
        roots = self._rest
        if len(roots) <= 2 * self._sample:
            self._rest = roots[:0]
        else:
            sample = self._generator.choice(len(roots), self._sample, replace=False, shuffle=False)
            self._rest = np.delete(roots, sample)
            roots = roots[sample]
        return roots, self._scored(roots) if self._sign else np.zeros(len(roots), np.intp)

    def _most_used(self) -> tuple[Slots, Slots]:
        """Return the roots of the most used trees, and the steps of their used shares."""
        roots, steps = self._rest, self._scored(self._rest)
        if len(roots) <= 2 * self._sample:
            self._rest = roots[:0]
            return roots, steps
        ascending = np.argpartition(steps, -self._sample)
        best = ascending[-self._sample :]
        self._rest = roots[ascending[: -self._sample]]
        return roots[best], steps[best]

    def _scored(self, roots: Slots) -> Slots:
        """Return the steps of the used shares."""
        usage = TreeUsage(self._narrowed, roots)
        self._usage.update(zip(roots.tolist(), zip(itertools.repeat(usage), itertools.count()), strict=False))
        steps: Slots = (usage.shares() * _STEPS).astype(np.intp)
        return steps
