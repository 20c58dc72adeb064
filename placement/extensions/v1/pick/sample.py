"""Which trees are looked at, and how much of them is used.

Scoring a hundred thousand trees for one pick would cost more than all the rest.  So a pick that spreads looks at a
random sample, and takes the best of it: the "power of d choices" (Mitzenmacher, "The power of two choices in randomized
load balancing", IEEE TPDS 12, 2001; Ousterhout et al., "Sparrow: distributed, low latency scheduling", SOSP 2013).
With d in the hundreds the best one is among the best percent of all.  The others are looked at when the sample has no
room.  A pick that packs scores all trees, because most samples would miss the few that are in use.  And where picks are
spread over domains the sample is stratified: it has trees of each domain, also of small ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.pick.strategy import Preference, Strategy
from placement.extensions.v1.pick.usage import TreeUsage
from placement.index.slots import Slots, SlotSet
from placement.search.narrow.narrowing import Narrowed

#: The size of a sample: this, and so many for each pick that is wanted.
SAMPLE, PER_PICK = 64, 4
#: The same for the number of domains, and for the trees of each domain.
_DOMAINS, _TREES = 16, 8
#: When a sample has no room, the next one is so many times as large.
GROWTH = 4


def sample_size(picks: int) -> int:
    """Return how many trees are enough to choose from, for so many picks; half of them are a sample of more."""
    return 2 * (SAMPLE + PER_PICK * picks)


class Sample(NamedTuple):
    """Some trees."""

    roots: Slots
    #: None if it does not matter.
    usage: TreeUsage | None


class Samples:
    """All trees that may serve a query, some at a time."""

    def __init__(
        self, narrowed: Narrowed, roots: SlotSet, strategy: Strategy, picks: int, generator: np.random.Generator
    ) -> None:
        """Begin with all of the trees.

        Args:
            roots: Those of ``narrowed``, or some of them.
            picks: How many trees are probably asked for.
            generator: What samples are drawn with.
        """
        self._narrowed = narrowed
        self._strategy = strategy
        self._generator = generator
        self._picks = picks
        self._size = sample_size(picks) // 2
        #: Those that were not looked at, but for those of the last sample.
        self._rest = roots.slots()
        #: The indexes of these in ``_rest``.
        self._drawn: Slots = self._rest[:0]

    def next(self) -> Sample | None:
        """Return more trees; None if there are none."""
        if len(self._drawn):
            self._rest, self._drawn = np.delete(self._rest, self._drawn), self._drawn[:0]
        if not len(self._rest):
            return None
        roots = self._draw()
        self._size *= GROWTH
        by_chance = self._strategy.preference == Preference.RANDOM
        return Sample(roots, None if by_chance else TreeUsage(self._narrowed, roots))

    def _draw(self) -> Slots:
        if len(self._rest) <= 2 * self._size:  # all of ``sample_size``
            roots, self._rest = self._rest, self._rest[:0]
            return roots
        if self._strategy.preference == Preference.PACK:
            shares = TreeUsage(self._narrowed, self._rest).shares()
            self._drawn = np.argpartition(shares, -self._size)[-self._size :]
        else:
            # Those that are drawn twice are few.
            drawn = [self._generator.integers(len(self._rest), size=self._size), *self._of_domains()]
            self._drawn = np.unique(np.concatenate(drawn))
        return self._rest[self._drawn]

    def _of_domains(self) -> Iterator[Slots]:
        """Yield the indexes of some trees of each domain."""
        domains = self._strategy.members(self._narrowed.snapshot)
        wanted = _DOMAINS + PER_PICK * self._picks
        if len(domains) > wanted:
            domains = [domains[number] for number in self._generator.choice(len(domains), wanted, replace=False)]
        size = _TREES + PER_PICK * self._picks // max(len(domains), 1)
        rest = SlotSet.sparse(self._rest)
        for domain in domains:
            members = (domain & rest).slots()
            if len(members):
                yield np.searchsorted(self._rest, members[self._generator.integers(len(members), size=size)])
