"""Equivalence classes of trees, found with arrays: the result of a search in one tree holds for its whole class.

Trees are equivalent if their canonical forms are equal (``solver/canonical_form.py``).  The form consists of facts
about the providers that can supply some demand: these demands, the available amounts, the nearest ancestor that is also
such a provider, and the required traits.  Here each fact is a column of numbers over all these providers, and the
numbers of a tree are combined into one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index.forest import Forest
from placement.index.slots import Mask, Slots, SlotSet
from placement.search.budget import Budget
from placement.search.narrow.narrowing import Narrowed
from placement.search.solver.problem import Requirements

#: Maximum number of providers in a tree that is compared with others.
MAX_PROVIDERS = 64
#: Upper bound of the numbers that rows are combined into.
_MAX_NUMBER = 2**62
#: Array elements per operation of the budget.
_ELEMENTS_PER_OPERATION = 200

_Numbers = npt.NDArray[np.int64]


class TreeClasses(NamedTuple):
    """Trees, each with its equivalence class."""

    roots: Slots
    #: The number of the class of each root.
    classes: _Numbers
    #: The first root of each class.
    first: Slots

    def of_classes(self, classes: Collection[int]) -> SlotSet:
        """Return the roots of the trees in some classes."""
        return SlotSet.sparse(self.roots[self._mask(classes)])

    def other_trees(self, classes: Collection[int]) -> SlotSet:
        """Return the roots of the trees in all other classes, except the first root of each."""
        mask = ~self._mask(classes)
        mask[np.searchsorted(self.roots, self.first)] = False
        return SlotSet.sparse(self.roots[mask])

    def _mask(self, classes: Collection[int]) -> Mask:
        selected = np.zeros(len(self.first), np.bool_)
        selected[list(classes)] = True
        return selected[self.classes]


def are_comparable(narrowed: Narrowed) -> bool:
    """Whether trees can be compared: no sharing provider is eligible, and candidates may be nested."""
    return narrowed.query.nested and not any(eligible.sharing for eligible in narrowed.eligible)


def small_trees(roots: SlotSet, forest: Forest) -> SlotSet:
    """Return the roots of the trees small enough to be compared."""
    if not roots:
        return roots
    descendants = np.bincount(forest.roots(forest.children), minlength=forest.size)
    return roots & SlotSet.dense(descendants < MAX_PROVIDERS)


def equivalent_trees(narrowed: Narrowed, trees: SlotSet, budget: Budget) -> TreeClasses:
    """Return the equivalence classes of trees, ordered by their first roots.

    Args:
        trees: Roots from ``small_trees``; ``are_comparable`` must hold.

    Raises:
        Exhausted: The budget is exhausted.
    """
    forest = narrowed.snapshot.forest
    size, roots = forest.size, trees.slots()
    eligible = [providers.local.mask(size) for providers in dict.fromkeys(narrowed.eligible)]
    members = np.flatnonzero(np.logical_or.reduce(eligible) & forest.trees_of(trees).mask(size))
    member_roots = forest.roots(members)
    if (member_roots[1:] < member_roots[:-1]).any():
        members = members[np.argsort(member_roots, kind="stable")]
        member_roots = forest.roots(members)
    starts = np.flatnonzero(np.diff(member_roots, prepend=-1))
    lengths = np.diff(starts, append=len(members))
    positions = np.arange(len(members)) - np.repeat(starts, lengths)
    facts = _Rows(len(members))
    for column, bound in _facts(narrowed, eligible, members, positions):
        budget.spend(1 + len(members) // _ELEMENTS_PER_OPERATION)
        facts.append(column, bound)
    tree_rows = _Rows(len(roots))
    for position in range(int(lengths.max(initial=0))):
        budget.spend(1 + len(roots) // _ELEMENTS_PER_OPERATION)
        # 0 means no provider.
        column = np.zeros(len(roots), np.int64)
        present = lengths > position
        column[present] = facts.numbers[starts[present] + position] + 1
        tree_rows.append(column, facts.bound + 1)
    _, first, classes = np.unique(tree_rows.numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return TreeClasses(roots, np.argsort(order)[classes], roots[first[order]])


class _Rows:
    """Rows of numbers, each combined into one number; two rows are equal if and only if their numbers are equal."""

    def __init__(self, count: int) -> None:
        """Create empty rows."""
        self.numbers: _Numbers = np.zeros(count, np.int64)
        self.bound = 1

    def append(self, column: npt.NDArray[np.integer | np.bool_], bound: int) -> None:
        """Append a number to each row.

        Args:
            bound: An exclusive upper bound of the column.
        """
        if self.bound * bound > _MAX_NUMBER:
            distinct, self.numbers = np.unique(self.numbers, return_inverse=True)
            self.bound = len(distinct)
        self.numbers = self.numbers * bound + column
        self.bound *= bound


def _facts(
    narrowed: Narrowed, eligible: list[Mask], members: Slots, positions: _Numbers
) -> Iterator[tuple[npt.NDArray[np.integer | np.bool_], int]]:
    """Yield facts about the members as columns of numbers, each with an exclusive upper bound."""
    snapshot, requirements = narrowed.snapshot, Requirements.from_query(narrowed.query)
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
        nearest[members] = positions + 1
        ancestors = _nearest_ancestors(snapshot.providers.parents, members, nearest > 0)
        yield np.where(ancestors >= 0, nearest[ancestors], 0), MAX_PROVIDERS + 1


def _nearest_ancestors(parents: Callable[[Slots], Slots], members: Slots, marked: Mask) -> Slots:
    """Return the nearest marked ancestor of each member, or -1."""
    ancestors: Slots = parents(members)
    while len(unmarked := np.flatnonzero((ancestors >= 0) & ~marked[ancestors])):
        ancestors[unmarked] = parents(ancestors[unmarked])
    return ancestors
