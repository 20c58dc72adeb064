"""How much of each tree is used, of the classes that a query asks for."""

from __future__ import annotations

from itertools import chain

import numpy as np
import numpy.typing as npt

from placement.index.slots import Slots, SlotSet
from placement.search.narrow.narrowing import Narrowed
from placement.search.solver.problem import Candidate, Requirements


class TreeUsage:
    """The used share of some trees; changes with each pick.

    Only providers that can supply a demand count, each in its own tree: what a tree borrows from sharing providers says
    nothing about the tree.
    """

    def __init__(self, narrowed: Narrowed, roots: Slots) -> None:
        """Read the usage of the trees with these roots."""
        snapshot = narrowed.snapshot
        self._provider = snapshot.provider
        self._classes = sorted(narrowed.query.resource_classes)
        self._capacity = np.zeros((len(self._classes), len(roots)))
        self._used = np.zeros((len(self._classes), len(roots)))
        slots, tree = _members(narrowed, roots)
        for row, (name, local) in enumerate(zip(self._classes, _eligible(narrowed, self._classes), strict=True)):
            mine = local.mask(snapshot.size)[slots]
            column = snapshot.column(name)
            assert column is not None, name  # or there were no eligible providers
            capacity, used = column.exact_capacity_and_usage(slots[mine])
            self._capacity[row] = np.bincount(tree[mine], capacity, len(roots))
            self._used[row] = np.bincount(tree[mine], used, len(roots))
        self._capacity[self._capacity == 0] = 1  # nothing of the class in the tree: nothing of it is used

    def shares(self) -> npt.NDArray[np.float64]:
        """Return the largest used share of the classes, for each tree."""
        shares: npt.NDArray[np.float64] = (self._used / self._capacity).max(axis=0)
        return shares

    def add(self, place: int, root: int, candidate: Candidate) -> None:
        """Count what a candidate takes from the tree.

        Args:
            place: The index of the tree among ``roots``.
        """
        for slot, amounts in candidate.amounts.items():
            if self._provider(slot).root == root:
                for name, amount in amounts.items():
                    self._used[self._classes.index(name), place] += amount

    def share(self, place: int) -> float:
        """Return the largest used share of one tree."""
        return float((self._used[:, place] / self._capacity[:, place]).max())


def _members(narrowed: Narrowed, roots: Slots) -> tuple[Slots, Slots]:
    """Return the providers of the trees, and for each the index of its tree."""
    forest = narrowed.snapshot.forest
    places = np.arange(len(roots))
    if not len(forest.children):
        return roots, places
    trees = [forest.tree(root) for root in roots.tolist()]
    sizes = np.fromiter(map(len, trees), np.intp, len(trees))
    return np.fromiter(chain.from_iterable(trees), np.intp, int(sizes.sum())), np.repeat(places, sizes)


def _eligible(narrowed: Narrowed, classes: list[str]) -> list[SlotSet]:
    """Return the providers that can supply a demand for the class in their own tree, for each class."""
    demands = list(zip(Requirements.of(narrowed.query).demands, narrowed.eligible, strict=True))
    return [
        SlotSet.union(
            [eligible.local for demand, eligible in demands if name in demand.amounts], narrowed.snapshot.size
        )
        for name in classes
    ]
