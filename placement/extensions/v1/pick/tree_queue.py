"""The trees that may serve a query, the preferred one first.

Trees are compared by used shares in steps of 1/32, and equal ones are in random order.  Many workers that look at the
same snapshot therefore seldom take the same tree.
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

#: Steps of the used share.
_STEPS = 32
#: What the steps of a used share are multiplied with: the least is preferred.
_SIGNS = {Preference.SPREAD: 1, Preference.PACK: -1, Preference.RANDOM: 0}
#: More than the difference of the ``first`` of any two entries.
_PICK = 1000.0
#: More than any number of picks.
_NO_DOMAIN = 1e15


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
        self._heaps: OneHeap | EvenHeaps = OneHeap()
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


# --- queues of entries -----------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A tree; the least one is popped first."""

    #: What the strategy compares first and second.
    first: int
    second: int
    #: Decides between equal ones; positive.
    chance: float
    root: int


class OneHeap:
    """The least entry first."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []

    def add(self, entries: Iterable[Entry]) -> None:
        """Put many entries into the queue."""
        self._heap.extend(entries)
        heapify(self._heap)

    def push(self, entry: Entry) -> None:
        """Put an entry of a tree that was popped into the queue."""
        heappush(self._heap, entry)

    def pop(self) -> Entry | None:
        """Remove and return the next entry; None if there is none."""
        return heappop(self._heap) if self._heap else None

    def count(self, root: int) -> None:
        """Count a pick in a tree: for this order all that matters is in the entries."""


class EvenHeaps:
    """Trees of the domains with the fewest picks first, and of these the least entry.

    A tree may be in several domains, such as a rack and a zone.  Then it is their sum that counts: it is what the sum
    of the squares of the numbers of picks grows by, and that is least where picks are even.  Trees without a domain are
    last.  The methods are those of ``OneHeap``.
    """

    def __init__(self, domains_of: DomainsOf, picks: Counter[str]) -> None:
        """Begin with an empty queue.

        Args:
            domains_of: Returns the domains of a tree.
            picks: By domain; picks are counted here.
        """
        self._domains_of = domains_of
        self._counted = picks
        #: One heap for each set of domains.
        self._numbers: dict[frozenset[str], int] = {}
        self._heaps: list[list[Entry]] = []
        #: By domain: the heaps of its trees.
        self._of_domain: defaultdict[str, list[int]] = defaultdict(list)
        #: By heap: picks in its domains, times ``_PICK``; and the rank of its least entry, infinite if it is empty.
        self._picks: npt.NDArray[np.float64] = np.empty(0)
        self._least: npt.NDArray[np.float64] = np.empty(0)

    def add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            domains = self._domains_of(entry.root)
            number = self._numbers.setdefault(domains, len(self._heaps))
            if number == len(self._heaps):
                self._heaps.append([])
                for domain in domains:
                    self._of_domain[domain].append(number)
            self._heaps[number].append(entry)
        picks = [
            sum(self._counted[one] for one in domains) * _PICK if domains else _NO_DOMAIN for domains in self._numbers
        ]
        self._picks, self._least = np.array(picks), np.empty(len(picks))
        for number, heap in enumerate(self._heaps):
            heapify(heap)
            self._rank(number)

    def _rank(self, number: int) -> None:
        heap = self._heaps[number]
        self._least[number] = heap[0].first + heap[0].chance / (1 + heap[0].chance) if heap else np.inf

    def push(self, entry: Entry) -> None:
        number = self._numbers[self._domains_of(entry.root)]
        heappush(self._heaps[number], entry)
        self._rank(number)

    def pop(self) -> Entry | None:
        if not self._heaps:
            return None
        number = int(np.argmin(self._picks + self._least))
        if not self._heaps[number]:
            return None
        entry = heappop(self._heaps[number])
        self._rank(number)
        return entry

    def count(self, root: int) -> None:
        for domain in self._domains_of(root):
            self._counted[domain] += 1
            self._picks[self._of_domain[domain]] += _PICK
