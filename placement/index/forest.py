"""The trees of providers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from placement.index.slots import Mask, Slots, SlotSet

#: The number of slots per tree above which members are collected tree by tree, instead of with a mask.
_SLOTS_PER_TREE = 64


class Forest:
    """An immutable set of trees.  A slot without a provider is in no tree."""

    __slots__ = ("_root", "alive", "all_roots", "children", "everything", "is_lone", "is_root", "members")

    def __init__(self, root: Slots, alive: Mask, members: Mapping[int, tuple[int, ...]]) -> None:
        """Build a forest.

        Args:
            root: The root of every slot; the root of a root is itself.
            alive: Whether a slot has a provider.
            members: The members of each tree of more than one provider, ascending, by root.
        """
        self._root = root
        self.alive = alive
        self.is_root: Mask = alive & (root == np.arange(len(root)))
        self.all_roots = SlotSet.dense(self.is_root)
        self.everything = SlotSet.dense(alive)
        #: The providers that are not roots.
        self.children: Slots = np.flatnonzero(alive & ~self.is_root)
        #: Whether the provider in a slot is the only one in its tree.
        self.is_lone: Mask = self.is_root.copy()
        self.is_lone[root[self.children]] = False
        self.members = members

    @classmethod
    def of_roots(cls, roots: Sequence[int], size: int) -> Forest:
        """Return a forest of ``size`` slots in which slot n has the root ``roots[n]``."""
        root = np.arange(size, dtype=np.intp)
        root[: len(roots)] = roots
        alive = np.zeros(size, dtype=np.bool_)
        alive[: len(roots)] = True
        trees: dict[int, list[int]] = {}
        for slot, top in enumerate(roots):
            if slot != top:
                trees.setdefault(top, [top]).append(slot)
        return cls(root, alive, {top: tuple(sorted(tree)) for top, tree in trees.items()})

    @property
    def size(self) -> int:
        """The number of slots, including free slots."""
        return len(self._root)

    def tree(self, root: int) -> tuple[int, ...]:
        """Return the members of one tree, including its root."""
        return self.members.get(root) or (root,)

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
        roots = np.zeros(self.size, dtype=np.bool_)
        roots[self._root[members.slots()]] = True
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
        root[: self.size], alive[: self.size] = self._root, self.alive
        changed_trees: dict[int, set[int]] = {}

        def tree(top: int) -> set[int]:
            if top not in changed_trees:
                exists = top < self.size and self.alive[top] and self._root[top] == top
                changed_trees[top] = set(self.tree(top)) if exists else set()
            return changed_trees[top]

        for slot in roots:
            if alive[slot]:
                tree(int(root[slot])).discard(slot)
        for slot, top in roots.items():
            root[slot], alive[slot] = (slot, False) if top is None else (top, True)
            if top is not None:
                tree(top).add(slot)
        members = dict(self.members)
        for top, slots in changed_trees.items():
            if len(slots) > 1:
                members[top] = tuple(sorted(slots))
            else:
                members.pop(top, None)
        return Forest(root, alive, members)
