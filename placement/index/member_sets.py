"""The sets of traits, aggregates or resource classes that providers have, each stored once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from placement.index.arrays import Arrays
from placement.index.slots import Slots

Integers = npt.NDArray[np.int64]
Value = TypeVar("Value")

#: Maximum number of sets that are kept as Python objects; clouds have few different sets of traits.
_MAX_CACHED = 10_000
_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class MemberSets(Generic[Value]):
    """The set of each slot.

    The sets are numbered.  Set n has the members ``members[offsets[n]:offsets[n + 1]]``, which are numbers.
    """

    __slots__ = ("_arrays", "_cached", "_make", "_offsets", "_set_of")

    def __init__(self, arrays: Arrays, make: Callable[[list[int]], Value]) -> None:
        """Store the arrays.

        Args:
            arrays: ``sets``: the number of the set of each slot; ``offsets``; ``members``: see the class.
            make: A function that makes the value of a set from its members.
        """
        self._arrays = arrays
        # Elements of a memoryview are Python numbers, and take a third of the time of elements of an array.
        self._set_of = arrays["sets"].data
        self._offsets = arrays["offsets"].data
        self._make = make
        self._cached: dict[int, Value] = {}

    def of_slot(self, slot: int) -> Value:
        """Return the set of a slot."""
        return self._value(self._set_of[slot])

    def of_slots(self, slots: Slots) -> list[Value]:
        """Return the sets of several slots."""
        return [*map(self._value, self._arrays["sets"][slots].tolist())]

    def _value(self, number: int) -> Value:
        value = self._cached.get(number)
        if value is None:
            start, end = self._offsets[number], self._offsets[number + 1]
            value = self._make(self._arrays["members"][start:end].tolist())
            if len(self._cached) < _MAX_CACHED:
                self._cached[number] = value
        return value

    def pairs(self) -> Integers:
        """Return rows of slot and member for all sets."""
        return _pairs(self._arrays)


def intern_sets(pairs: Integers, count: int) -> Arrays:
    """Return the arrays of ``MemberSets`` for ``count`` slots.

    Args:
        pairs: Rows of slot and member, without duplicates, sorted by slot and then by member.
    """
    slots, members = pairs[:, 0], pairs[:, 1]
    ends = np.searchsorted(slots, np.arange(count), side="right")
    starts = np.append(0, ends[:-1])
    # Equal sets have equal sums of hashes.
    hashes = (members.astype(np.uint64) + np.uint64(1)) * np.uint64(_FACTORS[0])
    hashes = (hashes ^ (hashes >> np.uint64(31))) * np.uint64(_FACTORS[1])
    sums = np.append(np.uint64(0), np.cumsum(hashes ^ (hashes >> np.uint64(29))))
    _, first, sets = np.unique(sums[ends] - sums[starts], return_index=True, return_inverse=True)
    arrays = _arrays(members, starts[first], ends[first], sets)
    if not np.array_equal(_pairs(arrays), pairs):
        # Different sets have the same sum: store each set by itself.
        arrays = _arrays(members, starts, ends, np.arange(count))
    return arrays


def _arrays(members: Integers, starts: Integers, ends: Integers, sets: Integers) -> Arrays:
    """Return the arrays of the sets ``members[start:end]``."""
    sizes = ends - starts
    offsets = np.append(0, np.cumsum(sizes))
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    return {
        "sets": sets.astype(np.int32),
        "offsets": offsets.astype(np.int32),
        "members": members[np.repeat(starts, sizes) + within],
    }


def _pairs(arrays: Arrays) -> Integers:
    sets, offsets, members = (arrays[name] for name in ("sets", "offsets", "members"))
    sizes = np.diff(offsets)[sets]
    slots = np.repeat(np.arange(len(sets)), sizes)
    within = np.arange(len(slots)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.stack((slots, members[offsets[:-1][sets].repeat(sizes) + within]), axis=1)
