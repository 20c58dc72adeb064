"""An index from numbers of 64 bits, such as hashes, to slots."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from placement.index.arrays import Arrays

Keys = npt.NDArray[np.uint64]


class KeyIndex:
    """Slots by key, sorted by key; several slots may have the same key."""

    __slots__ = ("_keys", "_slots")

    def __init__(self, keys: Keys, slots: npt.NDArray[np.int32]) -> None:
        """Store the arrays that ``key_arrays`` returns."""
        self._keys, self._slots = keys, slots

    def slots_of(self, key: int) -> Iterator[int]:
        """Yield the slots with this key."""
        position = int(self._keys.searchsorted(np.uint64(key)))
        while position < len(self._keys) and self._keys[position] == key:
            yield int(self._slots[position])
            position += 1


def key_arrays(keys: Keys, slots: npt.NDArray[np.intp]) -> Arrays:
    """Return the arrays of an index of these keys, in any order."""
    order = np.argsort(keys, kind="stable")
    return {"keys": keys[order], "slots": slots[order].astype(np.int32)}
