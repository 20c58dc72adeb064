"""What is free for a query, as arrays over all slots, and how many demands of a kind that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.index.slots import Slots
from placement.index.snapshot import Snapshot
from placement.search.narrow.narrowing import Eligible, Narrowed
from placement.search.query.query import UNSUFFIXED
from placement.search.solver.problem import Requirements

Integers = npt.NDArray[np.int64]

#: More copies than this on one provider are counted as so many: sums over all providers stay exact as floats.
MOST = 2**36
#: Above every amount that is free; capacities of absurd ratios exceed 64 bits.
_MOST_FREE = 2.0**52


@dataclass(frozen=True, slots=True)
class Kind:
    """Equal demands: the same amounts of the same providers.  One placement has all of them."""

    eligible: Eligible
    amounts: Mapping[str, int]
    suffixed: bool
    #: How many of these demands a placement has.
    times: int


def kinds_of(narrowed: Narrowed, requirements: Requirements) -> list[Kind]:
    """Return the kinds of the demands, in the order of the query."""
    times: dict[tuple[int, bool], int] = {}
    first: dict[tuple[int, bool], Kind] = {}
    for demand, eligible in zip(requirements.demands, narrowed.eligible, strict=True):
        key = id(eligible), demand.suffix != UNSUFFIXED
        times[key] = times.get(key, 0) + 1
        first.setdefault(key, Kind(eligible, demand.amounts, key[1], 1))
    return [Kind(kind.eligible, kind.amounts, kind.suffixed, times[key]) for key, kind in first.items()]


class Supply:
    """Free amounts, and the largest that one consumer can have, by class and slot; immutable.

    The largest amount is 2**52 where it is not less than what is free: it is no limit of its own there.

    Attributes:
        rounded: Whether free amounts of a class are too large for exact sums.
    """

    __slots__ = ("free", "largest", "rounded", "size")

    def __init__(self, snapshot: Snapshot, classes: Mapping[str, int]) -> None:
        """Read the columns of the classes."""
        self.size = snapshot.size
        self.rounded = False
        self.free: dict[str, Integers] = {}
        self.largest: dict[str, Integers] = {}
        for name in classes:
            self.free[name] = np.zeros(self.size, np.int64)
            self.largest[name] = np.full(self.size, _MOST_FREE, np.int64)
            column = snapshot.column(name)
            if column is None:
                continue
            inventories = column.inventories()
            free = np.clip(np.floor(inventories.capacity) - inventories.used, 0, _MOST_FREE)
            self.rounded |= float(free.sum()) >= _MOST_FREE
            self.free[name][inventories.slots] = free
            limited = inventories.max_unit < free
            self.largest[name][inventories.slots[limited]] = inventories.max_unit[limited]

    def copies(self, amounts: Mapping[str, int], slots: Slots) -> Integers:
        """Return how many times each provider could supply the amounts; ``MOST`` where there are none."""
        copies = np.full(len(slots), MOST, np.int64)
        for name, amount in amounts.items():
            np.minimum(copies, self.free[name][slots] // amount, out=copies)
        return copies

    def at_once(self, amounts: Mapping[str, int], slots: Slots) -> Integers:
        """Return how many times each provider could supply the amounts to one consumer, free amounts aside."""
        at_once = np.full(len(slots), MOST, np.int64)
        for name, amount in amounts.items():
            np.minimum(at_once, self.largest[name][slots] // amount, out=at_once)
        return at_once
