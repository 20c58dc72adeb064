"""How much of each tree is used, of the classes that a query asks for.

Only providers that can supply a demand count, each in its own tree: what a tree borrows from sharing providers says
nothing about the tree.
"""

from __future__ import annotations

from itertools import chain
from operator import truediv

import numpy as np
import numpy.typing as npt

from placement.index.slots import Slots, SlotSet
from placement.search.narrow.narrowing import Narrowed
from placement.search.solver.problem import Candidate, Requirements

#: Members of trees are collected one by one if there are so few trees among the slots of the snapshot.
_FEW = 64

Shares = npt.NDArray[np.float64]


class TreeUsage:
    """The usage of some trees; changes with each pick."""

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
