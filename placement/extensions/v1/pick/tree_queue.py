"""A priority queue of the trees that may serve a query.

Trees are compared by used share in steps of 1/32, with ties in random order.  Many worker processes with the same
snapshot therefore seldom take the same tree.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.extensions.v1.pick.sample import Samples, TreeUsage
from placement.extensions.v1.pick.strategy import ROOT, DomainsOf, Preference, Strategy
from placement.index.slots import SlotSet
from placement.search.narrow.narrowing import Narrowed
from placement.search.solver.problem import Candidate

#: Steps of the used share between 0 and 1.
_STEPS = 32
#: Factors of a used share in steps; the smallest product is preferred.
_SIGNS = {Preference.SPREAD: 1, Preference.PACK: -1, Preference.RANDOM: 0}
#: Weight of one pick in the order of the heaps: more than the difference of ``first`` of any two entries.
_PICK = 1000.0
#: Weight of a heap without domains: more than any number of picks.
_NO_DOMAIN = 1e15


@dataclass(slots=True)
class Tally:
    """The number of picks so far, by root and by domain."""

    trees: Counter[int] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)


class TreeQueue:
    """A priority queue of trees; the order follows a strategy."""

    def __init__(
        self,
        narrowed: Narrowed,
        roots: SlotSet,
        strategy: Strategy,
        tally: Tally,
        picks: int,
        generator: np.random.Generator,
    ) -> None:
        """Start with all trees in the queue.

        Args:
            roots: The roots of ``narrowed``, or a subset.
            tally: The picks so far; other queues may share it.
            picks: Expected number of picks.
            generator: The random generator for samples and ties.
        """
        self._sign = _SIGNS[strategy.preference]
        self._over_trees = strategy.spread_over == ROOT
        self._tally = tally
        self._generator = generator
        self._samples = Samples(narrowed, roots, strategy, picks, generator)
        self._heaps: OneHeap | EvenHeaps = OneHeap()
        if strategy.spread_over is not None and not self._over_trees:
            self._heaps = EvenHeaps(strategy.domains(narrowed.snapshot), tally.domains)
        #: Steps of the used share, by root; usage of the sample and index of the tree in it, by root.
        self._steps: dict[int, int] = {}
        self._usage: dict[int, tuple[TreeUsage, int]] = {}
        #: The ``chance`` of the entry popped last.
        self._last_chance = 0.0

    def pop(self) -> int | None:
        """Remove and return the preferred tree; None if the queue is empty."""
        while (entry := self._heaps.pop()) is None:
            if not self._add_sample():
                return None
        self._last_chance = entry.chance
        return entry.root

    def push(self, root: int) -> None:
        """Put a popped tree back."""
        # Each of several exponentially distributed numbers is equally likely to be the smallest, no matter when it was
        # drawn, since the distribution is memoryless.
        chance = self._last_chance + self._generator.exponential()
        self._heaps.push(self._entry(root, self._steps[root], chance))

    def count(self, root: int, candidate: Candidate) -> None:
        """Count a pick in a popped tree."""
        self._tally.trees[root] += 1
        self._heaps.count(root)
        if root in self._usage:
            usage, index = self._usage[root]
            self._steps[root] = int(usage.add(index, root, candidate) * _STEPS)

    def _entry(self, root: int, steps: int, chance: float) -> Entry:
        by_usage, by_picks = self._sign * steps, self._tally.trees[root]
        if self._over_trees:
            return Entry(by_picks, by_usage, chance, root)
        return Entry(by_usage, self._sign * by_picks, chance, root)

    def _add_sample(self) -> bool:
        """Add the next sample to the queue; return whether one was left."""
        sample = self._samples.next()
        if sample is None:
            return False
        roots = sample.roots.tolist()
        steps = [0] * len(roots)
        if sample.usage is not None:
            steps = (sample.usage.shares() * _STEPS).astype(np.intp).tolist()
            self._usage.update(zip(roots, zip(itertools.repeat(sample.usage), itertools.count()), strict=False))
        self._steps.update(zip(roots, steps, strict=True))
        chances = self._generator.exponential(size=len(roots)) + self._last_chance
        self._heaps.add(map(self._entry, roots, steps, chances.tolist()))
        return True


# --- queues of entries -----------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A tree in the queue; the smallest entry is popped first."""

    #: The first and second criterion of the strategy.
    first: int
    second: int
    #: A positive number that breaks ties.
    chance: float
    root: int


class OneHeap:
    """A heap of entries, the smallest first."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []

    def add(self, entries: Iterable[Entry]) -> None:
        """Add many entries."""
        self._heap.extend(entries)
        heapify(self._heap)

    def push(self, entry: Entry) -> None:
        """Add the entry of a popped tree."""
        heappush(self._heap, entry)

    def pop(self) -> Entry | None:
        """Remove and return the smallest entry; None if the heap is empty."""
        return heappop(self._heap) if self._heap else None

    def count(self, root: int) -> None:
        """Count a pick in a tree; this order depends only on the entries."""


class EvenHeaps:
    """Heaps of entries, one for each set of domains: the domains with the fewest picks first.

    A tree may be in several domains, such as a rack and a zone; then the sum of their picks counts.  A pick increases
    the sum of the squares of the numbers of picks by about twice this sum, and the squares are minimal if picks are
    even.  Trees without a domain come last.  ``OneHeap`` has the same methods.
    """

    def __init__(self, domains_of: DomainsOf, picks: Counter[str]) -> None:
        """Start with an empty queue.

        Args:
            domains_of: A function that returns the domains of a tree.
            picks: The number of picks by domain; updated by ``count``.
        """
        self._domains_of = domains_of
        self._counted = picks
        #: Index of the heap of each set of domains.
        self._numbers: dict[frozenset[str], int] = {}
        self._heaps: list[list[Entry]] = []
        #: Indexes of the heaps with trees in a domain, by domain.
        self._heaps_by_domain: defaultdict[str, list[int]] = defaultdict(list)
        #: Picks in the domains of each heap, times ``_PICK``; rank of its smallest entry, infinite for an empty heap.
        self._picks: npt.NDArray[np.float64] = np.empty(0)
        self._ranks: npt.NDArray[np.float64] = np.empty(0)

    def add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            domains = self._domains_of(entry.root)
            number = self._numbers.setdefault(domains, len(self._heaps))
            if number == len(self._heaps):
                self._heaps.append([])
                for domain in domains:
                    self._heaps_by_domain[domain].append(number)
            self._heaps[number].append(entry)
        picks = [
            sum(self._counted[domain] for domain in domains) * _PICK if domains else _NO_DOMAIN
            for domains in self._numbers
        ]
        self._picks, self._ranks = np.array(picks), np.empty(len(picks))
        for number, heap in enumerate(self._heaps):
            heapify(heap)
            self._update_rank(number)

    def _update_rank(self, number: int) -> None:
        heap = self._heaps[number]
        self._ranks[number] = heap[0].first + heap[0].chance / (1 + heap[0].chance) if heap else np.inf

    def push(self, entry: Entry) -> None:
        number = self._numbers[self._domains_of(entry.root)]
        heappush(self._heaps[number], entry)
        self._update_rank(number)

    def pop(self) -> Entry | None:
        if not self._heaps:
            return None
        number = int(np.argmin(self._picks + self._ranks))
        if not self._heaps[number]:
            return None
        entry = heappop(self._heaps[number])
        self._update_rank(number)
        return entry

    def count(self, root: int) -> None:
        for domain in self._domains_of(root):
            self._counted[domain] += 1
            self._picks[self._heaps_by_domain[domain]] += _PICK
