"""The trees of providers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np

from placement.index.arrays import Arrays
from placement.index.slots import Mask, Slots, SlotSet, positions_in

#: The number of slots per tree above which members are collected tree by tree, instead of with a mask.
_SLOTS_PER_TREE = 64


class Forest:
    """An immutable set of trees.  A slot without a provider is in no tree."""

    __slots__ = (
        "_changed",
        "_members",
        "_root",
        "_start",
        "_starts",
        "alive",
        "all_roots",
        "children",
        "everything",
        "is_lone",
        "is_root",
    )

    def __init__(self, arrays: Arrays, changed: Mapping[int, tuple[int, ...]]) -> None:
        """Build a forest.

        Args:
            arrays: The arrays that ``forest_arrays`` returns.
            changed: The members of the trees that have changed since, ascending, by root.
        """
        #: The root of every slot; the root of a root, and of a slot without a provider, is itself.
        self._root: Slots = arrays["root"]
        #: Whether a slot has a provider.
        self.alive: Mask = arrays["alive"]
        self.is_root: Mask = arrays["is_root"]
        #: Whether the provider in a slot is the only one in its tree.
        self.is_lone: Mask = arrays["is_lone"]
        #: The providers that are not roots.
        self.children: Slots = arrays["children"]
        self.all_roots = SlotSet.dense(self.is_root)
        self.everything = SlotSet.dense(self.alive)
        #: The members of the tree of root n, from the n-th start to the next one.
        self._members, self._starts = arrays["members"], arrays["starts"]
        # Elements of a memoryview are Python numbers, and take a third of the time of elements of an array.
        self._start = self._starts.data
        self._changed = changed

    @property
    def size(self) -> int:
        """The number of slots, including free slots."""
        return len(self._root)

    def tree(self, root: int) -> tuple[int, ...]:
        """Return the members of one tree, including its root."""
        if not len(self.children):
            return (root,)
        members = self._changed.get(root)
        if members is None:
            members = tuple(self._members[self._start[root] : self._start[root + 1]].tolist())
        return members

    def roots(self, slots: Slots) -> Slots:
        """Return the root of each slot."""
        return self._root[slots]

    def roots_of(self, members: SlotSet) -> SlotSet:
        """Return the roots of the trees with a member in the set.

        Args:
            members: Slots with a provider.
        """
        if members is self.everything:
            return self.all_roots
        if not len(self.children):
            return members
        if members.is_sparse or members.count < len(self.children):
            roots = np.zeros(self.size, dtype=np.bool_)
            roots[self._root[members.slots()]] = True
        else:
            mask = members.mask(self.size)
            roots = mask & self.is_root
            roots[self._root[self.children[mask[self.children]]]] = True
        return SlotSet.dense(roots)

    def trees_of(self, roots: SlotSet) -> SlotSet:
        """Return all members of the trees whose root is in the set."""
        if roots is self.all_roots:
            return self.everything
        if not len(self.children):
            return roots
        if roots.is_sparse and roots.count * _SLOTS_PER_TREE < self.size:
            members = chain.from_iterable(map(self.tree, roots.slots().tolist()))
            return SlotSet.sparse(np.sort(np.fromiter(members, np.intp)))
        return SlotSet.dense(roots.mask(self.size)[self._root] & self.alive)

    def sample(self, count: int, generator: np.random.Generator) -> SlotSet:
        """Return a random sample of about ``count`` roots, which must be a small part of all."""
        drawn = generator.integers(self.size, size=count * self.size // self.all_roots.count)
        return SlotSet.sparse(np.unique(drawn[self.is_root[drawn]]))

    def with_roots(self, roots: Mapping[int, int | None], size: int) -> Forest:
        """Return the forest with new roots for some slots; a root of None removes the provider."""
        root, alive = np.arange(size, dtype=np.intp), np.zeros(size, dtype=np.bool_)
        is_root, is_lone = alive.copy(), alive.copy()
        for array, old in ((root, self._root), (alive, self.alive), (is_root, self.is_root), (is_lone, self.is_lone)):
            array[: self.size] = old
        changed_trees: dict[int, set[int]] = {}

        def tree(top: int) -> set[int]:
            if top not in changed_trees:
                changed_trees[top] = set(self.tree(top)) if top < self.size and self.is_root[top] else set()
            return changed_trees[top]

        for slot in roots:
            if alive[slot]:
                tree(int(root[slot])).discard(slot)
        for slot, top in roots.items():
            root[slot], alive[slot], is_root[slot] = (slot, False, False) if top is None else (top, True, top == slot)
            if top is not None:
                tree(top).add(slot)
        for top, members in changed_trees.items():
            is_lone[top] = members == {top}
        masks = {"root": root, "alive": alive, "is_root": is_root, "is_lone": is_lone}
        trees = {"children": self._children_with(roots), "members": self._members, "starts": self._starts}
        changed = {**self._changed, **{top: tuple(sorted(slots)) for top, slots in changed_trees.items()}}
        return Forest({**masks, **trees}, changed)

    def _children_with(self, roots: Mapping[int, int | None]) -> Slots:
        """Return the providers that are not roots, with new roots for some slots."""
        slots = np.fromiter(roots, np.intp)
        positions, were_children = positions_in(self.children, slots)
        unchanged = np.delete(self.children, positions[were_children])
        added = np.array(sorted(slot for slot, top in roots.items() if top not in (None, slot)), dtype=np.intp)
        return np.insert(unchanged, unchanged.searchsorted(added), added)


def forest_arrays(roots: Slots, size: int) -> Arrays:
    """Return the arrays of a forest of ``size`` slots in which slot n has the root ``roots[n]``."""
    root = np.arange(size, dtype=np.intp)
    root[: len(roots)] = roots
    alive = np.zeros(size, dtype=np.bool_)
    alive[: len(roots)] = True
    is_root = alive & (root == np.arange(size))
    children = np.flatnonzero(alive & ~is_root)
    is_lone = is_root.copy()
    is_lone[root[children]] = False
    starts = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(roots, minlength=size), out=starts[1:])
    members = np.argsort(roots, kind="stable").astype(np.int32)
    masks = {"root": root, "alive": alive, "is_root": is_root, "is_lone": is_lone}
    return {**masks, "children": children, "members": members, "starts": starts}
