"""A set of slots: as a mask when it holds many, as a sorted list when it holds few."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Slots = npt.NDArray[np.intp]

#: A list takes eight bytes for a member, a mask one byte for everybody.
_FEW = 16


class SlotSet:
    """Immutable; made for the providers of one trait or one aggregate."""

    __slots__ = ("_mask", "_slots", "count")

    def __init__(self, slots: Slots, size: int) -> None:
        """:param slots: sorted, each once.  :param size: how many slots there are."""
        self.count = len(slots)
        self._mask: Mask | None = None
        self._slots: Slots | None = None
        if self.count * _FEW < size:
            self._slots = slots
        else:
            self._mask = np.zeros(size, dtype=np.bool_)
            self._mask[slots] = True

    def mask(self, size: int) -> Mask:
        """True for every member; not to be written to."""
        known = self._mask  # looked at once: another thread may put one of another size there meanwhile
        if known is not None and len(known) >= size:
            return known[:size]
        mask = np.zeros(size, dtype=np.bool_)
        if known is None:
            mask[self._slots] = True
        else:
            mask[: len(known)] = known
            # The same set in a later snapshot with more slots; the earlier one may still ask.
            self._mask = mask
        return mask

    def slots(self) -> Slots:
        """The members, sorted; not to be written to."""
        if self._slots is not None:
            return self._slots
        assert self._mask is not None
        return np.flatnonzero(self._mask)

    def changed(self, added: Collection[int], removed: Collection[int], size: int) -> SlotSet:
        """The set with some members more, that it had not, and some less, that it had."""
        count = self.count + len(added) - len(removed)
        if self._mask is None and count * _FEW < size:
            assert self._slots is not None
            fresh = np.sort(np.fromiter(added, np.intp))
            slots = np.insert(self._slots, np.searchsorted(self._slots, fresh), fresh)
            return SlotSet(slots[~np.isin(slots, list(removed))] if removed else slots, size)
        mask = self.mask(size).copy()
        mask[list(added)] = True
        mask[list(removed)] = False
        if count * _FEW < size:
            return SlotSet(np.flatnonzero(mask), size)
        changed = SlotSet.__new__(SlotSet)
        changed._mask, changed._slots, changed.count = mask, None, count
        return changed


EMPTY = SlotSet(np.empty(0, np.intp), 1)
