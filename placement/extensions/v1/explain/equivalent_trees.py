"""Trees that pose equal combination problems, found with arrays: a search in one of them holds for all.

The canonical form of a tree (``solver/canonical_form.py``) is made of facts about the providers that can supply some
demand: which demands, how much is available, the nearest ancestor among them, and the required traits.  Here each fact
is a column of numbers over all these providers, and the numbers of a tree are combined into one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index.forest import Forest
from placement.index.slots import Mask, Slots, SlotSet
from placement.search.budget import Budget
from placement.search.narrow.narrowing import Narrowed
from placement.search.solver.problem import Requirements

#: Trees with more providers than this are not compared with others.
LARGEST = 64
#: The largest number that a row is combined into.
_MOST = 2**62
#: The number of array elements that count as one operation of the budget.
_AT_ONCE = 200

_Numbers = npt.NDArray[np.int64]


class TreeClasses(NamedTuple):
    """Some trees, each with its kind."""

    roots: Slots
    #: For each root the number of its kind.
    kinds: _Numbers
    #: For each kind the first root.
    first: Slots

    def of_classes(self, kinds: Collection[int]) -> SlotSet:
        """Return the roots of the trees of some kinds."""
        return SlotSet.sparse(self.roots[self._are_of(kinds)])

    def others(self, kinds: Collection[int]) -> SlotSet:
        """Return the roots of the trees of all other kinds, without the first of each."""
        others = ~self._are_of(kinds)
        others[np.searchsorted(self.roots, self.first)] = False
        return SlotSet.sparse(self.roots[others])

    def _are_of(self, kinds: Collection[int]) -> Mask:
        chosen = np.zeros(len(self.first), np.bool_)
        chosen[list(kinds)] = True
        return chosen[self.kinds]


def are_comparable(narrowed: Narrowed) -> bool:
    """Whether trees can be compared: no provider shares with others, and candidates may be nested."""
    return narrowed.query.nested and not any(one.sharing for one in narrowed.eligible)


def small_trees(roots: SlotSet, forest: Forest) -> SlotSet:
    """Return the roots of the trees that are small enough to be compared."""
    if not roots:
        return roots
    others = np.bincount(forest.roots(forest.children), minlength=forest.size)
    return roots & SlotSet.dense(others < LARGEST)


def equivalent_trees(narrowed: Narrowed, trees: SlotSet, budget: Budget) -> TreeClasses:
    """Return the kinds of some trees, in the order of their first roots.

    Args:
        trees: Roots, from ``small_trees``; ``are_comparable`` holds.

    Raises:
        Exhausted: The budget is used up.
    """
    forest = narrowed.snapshot.forest
    size, roots = forest.size, trees.slots()
    eligible = [one.local.mask(size) for one in dict.fromkeys(narrowed.eligible)]
    members = np.flatnonzero(np.logical_or.reduce(eligible) & forest.trees_of(trees).mask(size))
    tops = forest.roots(members)
    if (tops[1:] < tops[:-1]).any():
        members = members[np.argsort(tops, kind="stable")]
        tops = forest.roots(members)
    starts = np.flatnonzero(np.diff(tops, prepend=-1))
    lengths = np.diff(starts, append=len(members))
    places = np.arange(len(members)) - np.repeat(starts, lengths)
    facts = _Rows(len(members))
    for column, bound in _facts(narrowed, eligible, members, places):
        budget.spend(1 + len(members) // _AT_ONCE)
        facts.join(column, bound)
    of_trees = _Rows(len(roots))
    for place in range(int(lengths.max(initial=0))):
        budget.spend(1 + len(roots) // _AT_ONCE)
        # 0 stands for no provider.
        column = np.zeros(len(roots), np.int64)
        there = lengths > place
        column[there] = facts.numbers[starts[there] + place] + 1
        of_trees.join(column, facts.bound + 1)
    _, first, kinds = np.unique(of_trees.numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return TreeClasses(roots, np.argsort(order)[kinds], roots[first[order]])


class _Rows:
    """Rows of numbers, each combined into one number that only equal rows share."""

    def __init__(self, count: int) -> None:
        """Begin with empty rows."""
        self.numbers: _Numbers = np.zeros(count, np.int64)
        self.bound = 1

    def join(self, column: npt.NDArray[np.integer | np.bool_], bound: int) -> None:
        """Append a number to each row.

        Args:
            bound: A number above all of them.
        """
        if self.bound * bound > _MOST:
            distinct, self.numbers = np.unique(self.numbers, return_inverse=True)
            self.bound = len(distinct)
        self.numbers = self.numbers * bound + column
        self.bound *= bound


def _facts(
    narrowed: Narrowed, eligible: list[Mask], members: Slots, places: _Numbers
) -> Iterator[tuple[npt.NDArray[np.integer | np.bool_], int]]:
    """Yield facts about the members as columns of numbers, each with a number above all of them."""
    snapshot, requirements = narrowed.snapshot, Requirements.of(narrowed.query)
    for mask in eligible:
        yield mask[members], 2
    for name in requirements.summed_classes:
        total, column = requirements.total[name], snapshot.column(name)
        if column is not None:
            yield np.clip(column.available(snapshot.size)[members], 0, total), total + 1
    for trait in requirements.named_traits:
        yield snapshot.with_trait(trait).mask(snapshot.size)[members], 2
    if requirements.same_subtrees:
        nearest = np.zeros(snapshot.size, np.int64)
        nearest[members] = places + 1
        above = _nearest_above(snapshot.parents, members, nearest > 0)
        yield np.where(above >= 0, nearest[above], 0), LARGEST + 1


def _nearest_above(parents: Slots, members: Slots, marked: Mask) -> Slots:
    """Return the nearest marked ancestor of each member; -1 where there is none."""
    above = parents[members]
    while len(unmarked := np.flatnonzero((above >= 0) & ~marked[above])):
        above[unmarked] = parents[above[unmarked]]
    return above
