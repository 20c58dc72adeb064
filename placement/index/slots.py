"""Sets of slots: dense, as a mask, or sparse, as a sorted array.

A slot is the index of a provider in the arrays of a snapshot.  The index holds a set for each trait and each aggregate,
and narrowing creates more by intersection, union and difference.  A mask takes one byte per slot of the snapshot, and a
sorted array eight bytes per member.  So a set of less than one eighth of the slots is smaller and faster as an array.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Slots = npt.NDArray[np.intp]

#: The number of slots per member above which a set is sparse.
_SPARSE_RATIO = 8


def is_sparse(count: Any, size: int) -> Any:
    """Whether a set of ``count`` slots is smaller as an array than as a mask; for numbers and arrays of numbers."""
    return count * _SPARSE_RATIO < size


class SlotSet:
    """An immutable set of slots.

    A dense set has the size of its snapshot; a sparse set fits snapshots of any size.  Operators choose the form that
    is cheapest to compute; ``compact`` chooses the smaller one.
    """

    __slots__ = ("_count", "_mask", "_slots")

    def __init__(self, slots: Slots | None, mask: Mask | None, count: int | None = None) -> None:
        """Store one of the two forms; ``from_slots``, ``sparse`` and ``dense`` create sets."""
        self._slots = slots
        self._mask = mask
        self._count = count if slots is None else len(slots)

    # --- construction ---

    @classmethod
    def from_slots(cls, slots: Slots, size: int) -> SlotSet:
        """Return the set of these slots in its smaller form.

        Args:
            slots: Sorted and unique.
            size: The number of slots of the snapshot.
        """
        if is_sparse(len(slots), size):
            return cls(slots, None)
        mask = np.zeros(size, dtype=np.bool_)
        mask[slots] = True
        return cls(None, mask)

    @classmethod
    def sparse(cls, slots: Slots) -> SlotSet:
        """Return the set of these slots, which must be sorted and unique; the array must not be changed afterwards."""
        return cls(slots, None)

    @classmethod
    def dense(cls, mask: Mask, count: int | None = None) -> SlotSet:
        """Return the set of the slots where the mask is true; the mask must not be changed afterwards.

        Args:
            mask: Whether a slot is a member.
            count: The number of members, if it is known.
        """
        return cls(None, mask, count)

    @staticmethod
    def union(sets: Collection[SlotSet], size: int) -> SlotSet:
        """Return the union of the sets.

        Args:
            size: The number of slots of the snapshot.
        """
        if len(sets) < 2:
            return next(iter(sets), EMPTY)
        mask = np.zeros(size, dtype=np.bool_)
        for members in sets:
            if members._mask is None:
                mask[members._slots] = True
            else:
                mask |= members._mask
        return SlotSet(None, mask)

    # --- reading ---

    @property
    def is_sparse(self) -> bool:
        """Whether the set is an array of its members."""
        return self._mask is None

    @property
    def size(self) -> int:
        """The number of slots of the snapshot of a dense set."""
        assert self._mask is not None
        return len(self._mask)

    @property
    def count(self) -> int:
        """The number of members."""
        if self._count is None:
            self._count = int(np.count_nonzero(self._mask))  # type: ignore[arg-type]
        return self._count

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        """Whether the set has a member."""
        if self._count is not None:
            return self._count > 0
        return bool(self._mask.any())  # type: ignore[union-attr]

    @property
    def nbytes(self) -> int:
        """The size of the set in memory, in bytes."""
        return (self._slots if self._mask is None else self._mask).nbytes  # type: ignore[union-attr]

    def mask(self, size: int) -> Mask:
        """Return a mask that is true for each member; the caller must not change it.

        Args:
            size: The number of slots of the snapshot.
        """
        if self._mask is not None and len(self._mask) == size:
            return self._mask
        mask = np.zeros(size, dtype=np.bool_)
        if self._mask is None:
            mask[self._slots] = True
        else:
            mask[: len(self._mask)] = self._mask
        return mask

    def slots(self) -> Slots:
        """Return the members, sorted; the caller must not change the array."""
        if self._slots is not None:
            return self._slots
        return np.flatnonzero(self._mask)  # type: ignore[arg-type]

    # --- combining ---

    def __and__(self, other: SlotSet) -> SlotSet:
        """Return the members of both sets."""
        if self._mask is None:
            if other._mask is None:
                smaller, larger = (self, other) if self.count <= other.count else (other, self)
                return SlotSet(_intersection(smaller.slots(), larger.slots()), None)
            slots = self.slots()
            return SlotSet(slots[other._mask[slots]], None)
        if other._mask is None:
            return other & self
        return SlotSet(None, self._mask & other._mask)

    def __sub__(self, other: SlotSet) -> SlotSet:
        """Return the members of this set that are not in the other one."""
        if self._mask is None:
            slots = self.slots()
            if other._mask is None:
                return SlotSet(np.setdiff1d(slots, other.slots(), assume_unique=True), None)
            return SlotSet(slots[~other._mask[slots]], None)
        if other._mask is None:
            mask = self._mask.copy()
            mask[other._slots] = False
            return SlotSet(None, mask)
        return SlotSet(None, self._mask & ~other._mask)

    def __or__(self, other: SlotSet) -> SlotSet:
        """Return the members of either set."""
        if self._mask is None:
            if other._mask is None:
                return SlotSet(_union(self.slots(), other.slots()), None)
            return other | self
        if other._mask is None:
            mask = self._mask.copy()
            mask[other._slots] = True
            return SlotSet(None, mask)
        return SlotSet(None, self._mask | other._mask)

    def compact(self) -> SlotSet:
        """Return the same set, sparse if that is smaller."""
        if self._mask is None or not is_sparse(self.count, len(self._mask)):
            return self
        return SlotSet(np.flatnonzero(self._mask), None)

    # --- editing: for the next snapshot ---

    def with_changes(self, added: Collection[int], removed: Collection[int], size: int) -> SlotSet:
        """Return the set with some members added and removed, in its smaller form.

        Args:
            added: Slots that are not members.
            removed: Slots that are members.
            size: The number of slots of the next snapshot.
        """
        count = self.count + len(added) - len(removed)
        if self._mask is None and is_sparse(count, size):
            inserted = np.sort(np.fromiter(added, np.intp))
            slots = self.slots()
            slots = np.insert(slots, np.searchsorted(slots, inserted), inserted)
            return SlotSet(slots[~np.isin(slots, list(removed))] if removed else slots, None)
        mask = self.mask(size).copy()
        mask[list(added)] = True
        mask[list(removed)] = False
        return SlotSet(None, mask).compact()

    def resize(self, size: int) -> SlotSet:
        """Return the same set for a snapshot with more slots."""
        return self if self._mask is None else SlotSet(None, self.mask(size))


def _intersection(smaller: Slots, larger: Slots) -> Slots:
    """Return the members of both sorted arrays; the second must not be the shorter one."""
    if not len(smaller):
        return smaller
    common: Slots = smaller[positions_in(larger, smaller)[1]]
    return common


def positions_in(members: Slots, slots: Slots) -> tuple[Slots, Mask]:
    """Return the position of each slot among the members, and a mask of the slots that are members.

    A slot that is not a member has an arbitrary valid position.

    Args:
        members: Sorted and unique.
    """
    if not len(members):
        return np.zeros(len(slots), np.intp), np.zeros(len(slots), np.bool_)
    positions = members.searchsorted(slots)
    positions[positions == len(members)] = 0
    return positions, members[positions] == slots


def _union(first: Slots, second: Slots) -> Slots:
    """Return the members of either sorted array; ``np.union1d`` hashes them, which takes ten times as long."""
    both = np.concatenate((first, second))
    both.sort(kind="stable")  # merges the two sorted runs
    distinct = np.ones(len(both), dtype=np.bool_)
    np.not_equal(both[1:], both[:-1], out=distinct[1:])
    return both[distinct]


EMPTY = SlotSet.sparse(np.empty(0, np.intp))


def intersection(sets: Iterable[SlotSet]) -> SlotSet:
    """Return the common members of the sets; there must be at least one set."""
    remaining = iter(sets)
    common = next(remaining)
    for members in remaining:
        common &= members
    return common
