"""Samples of trees, and the used share of each tree.

Scoring a hundred thousand trees for one pick would cost more than everything else.  So a pick that spreads takes the
best tree of a random sample: the "power of d choices" (Mitzenmacher, "The power of two choices in randomized load
balancing", IEEE TPDS 12, 2001; Ousterhout et al., "Sparrow: distributed, low latency scheduling", SOSP 2013).  For
example, the best of 68 trees is among the best 5 % of all with a probability of 97 %.  If no tree of
the sample has room, larger samples of the other trees follow.  A pick that packs scores all trees, because most samples
would miss the few that are in use.  If picks are spread over domains, the sample is stratified: it contains trees of
each domain, even of a small one.
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

#: Sample size: trees, plus trees per pick.
SAMPLE, PER_PICK = 64, 4
#: A stratified sample: domains, and trees per domain, each besides ``PER_PICK``.
_DOMAINS, _TREES_PER_DOMAIN = 16, 8
#: Growth factor of the sample size after a sample without room.
GROWTH = 4
#: Slots per tree above which the members of trees are collected tree by tree.
_SPARSE = 64

_Floats = npt.NDArray[np.float64]


def sample_size(picks: int) -> int:
    """Return the maximum number of trees used without sampling; from more trees, half that number is drawn."""
    return 2 * (SAMPLE + PER_PICK * picks)


class Sample(NamedTuple):
    """Trees to choose from."""

    roots: Slots
    #: The used shares; None if the strategy ignores usage.
    usage: TreeUsage | None


class Samples:
    """Successive samples of the trees that may serve a query."""

    def __init__(
        self, narrowed: Narrowed, roots: SlotSet, strategy: Strategy, picks: int, generator: np.random.Generator
    ) -> None:
        """Start with all trees unsampled.

        Args:
            roots: The roots of ``narrowed``, or a subset.
            picks: Expected number of picks.
            generator: The random generator for drawing samples.
        """
        self._narrowed = narrowed
        self._strategy = strategy
        self._generator = generator
        self._picks = picks
        self._size = sample_size(picks) // 2
        #: Roots not sampled yet, plus the roots of the last sample.
        self._remaining = roots.slots()
        #: Indexes of the last sample in ``_remaining``.
        self._drawn: Slots = self._remaining[:0]

    def next(self) -> Sample | None:
        """Return the next sample; None if no trees are left."""
        if len(self._drawn):
            self._remaining, self._drawn = np.delete(self._remaining, self._drawn), self._drawn[:0]
        if not len(self._remaining):
            return None
        roots = self._draw()
        self._size *= GROWTH
        ignores_usage = self._strategy.preference == Preference.RANDOM
        return Sample(roots, None if ignores_usage else TreeUsage(self._narrowed, roots))

    def _draw(self) -> Slots:
        if len(self._remaining) <= 2 * self._size:  # all of ``sample_size``
            roots, self._remaining = self._remaining, self._remaining[:0]
            return roots
        if self._strategy.preference == Preference.PACK:
            shares = TreeUsage(self._narrowed, self._remaining).shares()
            self._drawn = np.argpartition(shares, -self._size)[-self._size :]
        else:
            # Few trees are drawn twice, so the sample shrinks little.
            drawn = [self._generator.integers(len(self._remaining), size=self._size), *self._draw_from_domains()]
            self._drawn = np.unique(np.concatenate(drawn))
        return self._remaining[self._drawn]

    def _draw_from_domains(self) -> Iterator[Slots]:
        """Yield the indexes of random trees of each domain."""
        domains = self._strategy.members(self._narrowed.snapshot)
        count = _DOMAINS + PER_PICK * self._picks
        if len(domains) > count:
            domains = [domains[number] for number in self._generator.choice(len(domains), count, replace=False)]
        size = _TREES_PER_DOMAIN + PER_PICK * self._picks // max(len(domains), 1)
        unsampled = SlotSet.sparse(self._remaining)
        for domain in domains:
            members = (domain & unsampled).slots()
            if len(members):
                yield np.searchsorted(self._remaining, members[self._generator.integers(len(members), size=size)])


# --- used shares -----------------------------------------------------------------------------------------------------


class TreeUsage:
    """The used share of trees, for the classes of a query; updated with each pick.

    Only providers that can supply a demand count, each in its own tree: the usage of sharing providers elsewhere says
    nothing about a tree.
    """

    def __init__(self, narrowed: Narrowed, roots: Slots) -> None:
        """Read the usage of the trees with these roots."""
        self._provider = narrowed.snapshot.provider
        self._classes = sorted(narrowed.query.resource_classes)
        self._used, self._capacity = _used_and_capacity(narrowed, self._classes, roots)

    def shares(self) -> _Floats:
        """Return the largest used share of the classes, for each tree."""
        shares: _Floats = (self._used / self._capacity).max(axis=0)
        return shares

    def add(self, position: int, root: int, candidate: Candidate) -> float:
        """Add the amounts that a candidate takes from a tree, and return the largest used share of the tree.

        Args:
            position: The index of the tree among ``roots``.
        """
        for slot, amounts in candidate.amounts.items():
            if self._provider(slot).root == root:
                for name, amount in amounts.items():
                    self._used[self._classes.index(name), position] += amount
        return float(max(map(truediv, self._used[:, position].tolist(), self._capacity[:, position].tolist())))


def _used_and_capacity(narrowed: Narrowed, classes: list[str], roots: Slots) -> tuple[_Floats, _Floats]:
    """Return the used amounts and capacities of eligible providers by class and tree; a capacity of 0 becomes 1."""
    snapshot = narrowed.snapshot
    sums = np.zeros((2, len(classes), len(roots)))
    slots, position = _members(narrowed, roots)
    demands = Requirements.from_query(narrowed.query).demands
    for row, name in enumerate(classes):
        demanded = zip(demands, narrowed.eligible, strict=True)
        eligible = SlotSet.union(
            [providers.local for demand, providers in demanded if name in demand.amounts], snapshot.size
        )
        selected = eligible.mask(snapshot.size)[slots]
        column = snapshot.column(name)
        assert column is not None, name  # or no tree would be eligible
        capacity, used = column.exact_capacity_and_usage(slots[selected])
        sums[0, row] = np.bincount(position[selected], used, len(roots))
        sums[1, row] = np.bincount(position[selected], capacity, len(roots))
    # In a tree without capacity of a class, the used share of this class is 0.
    sums[1][sums[1] == 0] = 1
    return sums[0], sums[1]


def _members(narrowed: Narrowed, roots: Slots) -> tuple[Slots, Slots]:
    """Return the providers of the trees, and the index of the tree of each."""
    forest = narrowed.snapshot.forest
    positions = np.arange(len(roots))
    if not len(forest.children):
        return roots, positions
    if len(roots) * _SPARSE < forest.size:
        trees = [forest.tree(root) for root in roots.tolist()]
        sizes = np.fromiter(map(len, trees), np.intp, len(trees))
        return np.fromiter(chain.from_iterable(trees), np.intp, int(sizes.sum())), np.repeat(positions, sizes)
    position_of = np.full(forest.size, -1)
    position_of[roots] = positions
    slots = forest.everything.slots()
    position = position_of[forest.roots(slots)]
    selected = position >= 0
    return slots[selected], position[selected]
