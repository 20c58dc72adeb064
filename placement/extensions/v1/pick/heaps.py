"""Priority queues of trees: one for all trees, or one for those of each domain."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from placement.extensions.v1.pick.strategy import DomainsOf

#: More than the difference of the ``first`` of any two entries.
_PICK = 1000.0
#: More than any number of picks.
_NO_DOMAIN = 1e15


class Entry(NamedTuple):
    """A tree; the least one is popped first."""

    #: What the strategy compares first and second.
    first: int
    second: int
    #: Decides between equal ones; positive.
    chance: float
    root: int


class Heaps(Protocol):
    """A queue of entries."""

    def add(self, entries: Iterable[Entry]) -> None:
        """Put many entries into the queue."""

    def push(self, entry: Entry) -> None:
        """Put an entry of a tree that was popped into the queue."""

    def pop(self) -> Entry | None:
        """Remove and return the next entry; None if there is none."""

    def count(self, root: int) -> None:
        """Count a pick in a tree."""


class OneHeap:
    """The least entry first."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []

    def add(self, entries: Iterable[Entry]) -> None:
        self._heap.extend(entries)
        heapify(self._heap)

    def push(self, entry: Entry) -> None:
        heappush(self._heap, entry)

    def pop(self) -> Entry | None:
        return heappop(self._heap) if self._heap else None

    def count(self, root: int) -> None:
        """Do nothing: what matters is in the entries."""


class EvenHeaps:
    """Trees of the domains with the fewest picks first, and of these the least entry.

    A tree may be in several domains, such as a rack and a zone.  Then it is their sum that counts: it is what the sum
    of the squares of the numbers of picks grows by, and that is least where picks are even.  Trees without a domain are
    last.
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
