"""Arrays that share most elements with another array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.index.slots import Slots, positions_in

Integers = npt.NDArray[np.int64]


class PatchedArray:
    """An immutable array of numbers by slot: a shared array, and the elements that differ from it.

    Elements beyond the end of the array are 0.
    """

    __slots__ = ("_array", "_slots", "_values")

    def __init__(self, array: Integers, slots: Slots | None = None, values: Integers | None = None) -> None:
        """Store an array and, sorted by slot, the elements that differ from it."""
        self._array = array
        self._slots: Slots = np.empty(0, np.intp) if slots is None else slots
        self._values: Integers = np.empty(0, np.int64) if values is None else values

    def item(self, slot: int) -> int:
        """Return one element."""
        return int(self[np.array([slot])][0])

    def __getitem__(self, slots: Slots) -> Integers:
        """Return the elements of these slots."""
        if not len(slots) or slots.max() < len(self._array):
            elements = self._array.take(slots)
        else:
            elements = np.zeros(len(slots), dtype=np.int64)
            inside = slots < len(self._array)
            elements[inside] = self._array[slots[inside]]
        if len(self._slots):
            positions, is_changed = positions_in(self._slots, slots)
            elements[is_changed] = self._values[positions[is_changed]]
        return elements

    def array(self, size: int) -> Integers:
        """Return the first ``size`` elements as a new array."""
        elements = np.zeros(size, dtype=np.int64)
        common = min(size, len(self._array))
        elements[:common] = self._array[:common]
        inside = self._slots < size
        elements[self._slots[inside]] = self._values[inside]
        return elements

    def with_changes(self, changes: Mapping[int, int]) -> PatchedArray:
        """Return the array with these elements, by slot."""
        changed_slots = np.array(sorted(changes), dtype=np.intp)
        values = np.array([changes[slot] for slot in changed_slots.tolist()], dtype=np.int64)
        slots, (merged_values,) = merge_rows(self._slots, [self._values], changed_slots, [values])
        return PatchedArray(self._array, slots, merged_values)

    @property
    def changes(self) -> int:
        """The number of elements that are stored in addition to the shared array."""
        return len(self._slots)


def merge_rows(
    old_slots: Slots, old: Sequence[npt.NDArray[Any]], slots: Slots, new: Sequence[npt.NDArray[Any]]
) -> tuple[Slots, tuple[npt.NDArray[Any], ...]]:
    """Return the rows of two tables, each sorted by slot, as one; where both have a slot, the new row replaces the old.

    Args:
        old: The columns of the old rows.
        new: The columns of the new rows, of the same types.
    """
    remaining = ~positions_in(slots, old_slots)[1]
    merged_slots = np.concatenate((old_slots[remaining], slots))
    order = np.argsort(merged_slots)
    columns = (np.concatenate((before[remaining], after))[order] for before, after in zip(old, new, strict=True))
    return merged_slots[order], tuple(columns)
