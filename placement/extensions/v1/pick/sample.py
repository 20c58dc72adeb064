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
from itertools import chain
from operator import truediv
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.extensions.v1.pick.strategy import Preference, Strategy
from placement.index.slots import Slots, SlotSet
from placement.search.narrow.narrowing import Narrowed
from placement.search.solver.problem import Candidate, Requirements

#: The size of a sample: this, and so many for each pick that is wanted.
SAMPLE, PER_PICK = 64, 4
#: The same for the number of domains, and for the trees of each domain.
_DOMAINS, _TREES = 16, 8
#: When a sample has no room, the next one is so many times as large.
GROWTH = 4
#: Members of trees are collected one by one if there are so few trees among the slots of the snapshot.
_FEW = 64

Shares = npt.NDArray[np.float64]


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


# --- used shares -----------------------------------------------------------------------------------------------------


class TreeUsage:
    """How much of some trees is used, of the classes that a query asks for; changes with each pick.

    Only providers that can supply a demand count, each in its own tree: what a tree borrows from sharing providers says
    nothing about the tree.
    """

    def __init__(self, narrowed: Narrowed, roots: Slots) -> None:
        """Read the usage of the trees with these roots."""
        self._provider = narrowed.snapshot.provider
        self._classes = sorted(narrowed.query.resource_classes)
        self._used, self._capacity = _used_and_capacity(narrowed, self._classes, roots)

    def shares(self) -> Shares:
        """Return the largest used share of the classes, for each tree."""
        shares: Shares = (self._used / self._capacity).max(axis=0)
        return shares

    def add(self, place: int, root: int, candidate: Candidate) -> float:
        """Count what a candidate takes from a tree, and return its largest used share.

        Args:
            place: The index of the tree among ``roots``.
        """
        for slot, amounts in candidate.amounts.items():
            if self._provider(slot).root == root:
                for name, amount in amounts.items():
                    self._used[self._classes.index(name), place] += amount
        return float(max(map(truediv, self._used[:, place].tolist(), self._capacity[:, place].tolist())))


def _used_and_capacity(narrowed: Narrowed, classes: list[str], roots: Slots) -> tuple[Shares, Shares]:
    """Return sums over the eligible providers, by class and tree; the capacity is not 0."""
    snapshot = narrowed.snapshot
    sums = np.zeros((2, len(classes), len(roots)))
    slots, place = _members(narrowed, roots)
    demands = Requirements.of(narrowed.query).demands
    for row, name in enumerate(classes):
        demanded = zip(demands, narrowed.eligible, strict=True)
        eligible = SlotSet.union([one.local for demand, one in demanded if name in demand.amounts], snapshot.size)
        mine = eligible.mask(snapshot.size)[slots]
        column = snapshot.column(name)
        assert column is not None, name  # or no tree would be eligible
        capacity, used = column.exact_capacity_and_usage(slots[mine])
        sums[0, row] = np.bincount(place[mine], used, len(roots))
        sums[1, row] = np.bincount(place[mine], capacity, len(roots))
    # Of a class that the tree has nothing of, nothing is used.
    sums[1][sums[1] == 0] = 1
    return sums[0], sums[1]


def _members(narrowed: Narrowed, roots: Slots) -> tuple[Slots, Slots]:
    """Return the providers of the trees, and for each the index of its tree."""
    forest = narrowed.snapshot.forest
    places = np.arange(len(roots))
    if not len(forest.children):
        return roots, places
    if len(roots) * _FEW < forest.size:
        trees = [forest.tree(root) for root in roots.tolist()]
        sizes = np.fromiter(map(len, trees), np.intp, len(trees))
        return np.fromiter(chain.from_iterable(trees), np.intp, int(sizes.sum())), np.repeat(places, sizes)
    place_of = np.full(forest.size, -1)
    place_of[roots] = places
    slots = forest.everything.slots()
    place = place_of[forest.roots(slots)]
    mine = place >= 0
    return slots[mine], place[mine]
