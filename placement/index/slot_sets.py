"""The sets of slots by name: the providers with each trait, or in each aggregate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from placement.index.arrays import Arrays
from placement.index.slots import SlotSet, is_sparse


class SlotSets(Mapping[str, SlotSet]):
    """The sets that are not empty, by name; immutable.

    The sets in the arrays are numbered.  Set n is ``masks[rows[n]]`` if it is dense (``rows[n]`` is not negative), and
    otherwise ``slots[offsets[n]:offsets[n + 1]]``.
    """

    __slots__ = ("_arrays", "_changed", "_numbers", "_offsets", "_rows", "_slots")

    def __init__(self, arrays: Arrays, numbers: Mapping[str, int], changed: Mapping[str, SlotSet]) -> None:
        """Store the arrays, and the sets that have replaced those in the arrays.

        Args:
            arrays: The arrays that ``slot_set_arrays`` returns.
            numbers: The number of each set in the arrays, by name.
            changed: The other sets, which may be empty.
        """
        self._arrays, self._numbers, self._changed = arrays, numbers, changed
        # Elements of a memoryview are Python numbers, and take a third of the time of elements of an array.
        self._offsets, self._rows, self._slots = arrays["offsets"].data, arrays["rows"].data, arrays["slots"]

    @classmethod
    def from_arrays(cls, arrays: Arrays, names: Sequence[str]) -> SlotSets:
        """Return the sets with these names, in the order of their numbers."""
        return cls(arrays, {name: number for number, name in enumerate(names)}, {})

    def __getitem__(self, name: str) -> SlotSet:
        members = self._changed.get(name)
        if members is None:
            return self._set(self._numbers[name])
        if not members:
            raise KeyError(name)
        return members

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in self._numbers if name not in self._changed)
        yield from (name for name, members in self._changed.items() if members)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def with_changes(self, sets: Mapping[str, SlotSet]) -> SlotSets:
        """Return the sets with some replaced."""
        return SlotSets(self._arrays, self._numbers, {**self._changed, **sets})

    def _set(self, number: int) -> SlotSet:
        row = self._rows[number]
        if row < 0:
            return SlotSet.sparse(self._slots[self._offsets[number] : self._offsets[number + 1]])
        return SlotSet.dense(self._arrays["masks"][row], int(self._arrays["counts"][row]))


def slot_set_arrays(pairs: npt.NDArray[np.int64], count: int, size: int) -> Arrays:
    """Return the arrays of ``SlotSets``.

    Args:
        pairs: Rows of slot and number of a set, sorted by number and then by slot.
        count: The number of sets.
        size: The number of slots of the snapshot.
    """
    slots = pairs[:, 0]
    ends = np.searchsorted(pairs[:, 1], np.arange(count), side="right")
    sizes = np.diff(ends, prepend=0)
    dense = np.flatnonzero(~is_sparse(sizes, size))
    rows = np.full(count, -1, dtype=np.int32)
    rows[dense] = np.arange(len(dense))
    masks = np.zeros((len(dense), size), dtype=np.bool_)
    for row, number in enumerate(dense.tolist()):
        masks[row, slots[ends[number] - sizes[number] : ends[number]]] = True
    in_sparse_set = np.repeat(rows < 0, sizes)
    return {
        "rows": rows,
        "counts": sizes[dense],
        "masks": masks,
        "offsets": np.append(0, np.cumsum(np.where(rows < 0, sizes, 0))),
        "slots": slots[in_sparse_set].astype(np.intp),
    }
