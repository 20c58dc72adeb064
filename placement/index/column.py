"""One resource class of all providers: what they have of it and what is used, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index.slots import EMPTY, Mask, Slots, SlotSet
from placement.objects import capacity as rule

Arrays = tuple[npt.NDArray[Any], ...]

#: No column of the database holds more, and no inventory allows more at once.
LARGEST = 2**31 - 1
#: Whole numbers up to here are the same as floats; greater capacities, of absurd ratios, are more than 64 bits hold.
_EXACT = 2.0**53
#: A class that fewer providers have is kept as a list of rows instead of one row per slot.
_FEW = 8


class Inventory(NamedTuple):
    """What one provider has of the class."""

    capacity: float
    used: float
    min_unit: int
    max_unit: int
    step_size: int


#: Nothing fits here: no amount is both at least one and at most zero.
NOTHING = Inventory(0.0, 0.0, 1, 0, 1)
_TYPES = (np.float64, np.float64, np.int32, np.int32, np.int32)


def held(total: Any, reserved: Any, allocation_ratio: Any) -> Any:
    """How much can be held, for numbers and arrays; nothing where the ratio is not a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.nan_to_num(np.float64(1) * rule.capacity(total, reserved, allocation_ratio), nan=0.0)


def whole(amount: Any) -> Any:
    """The same as a number that the columns can hold, for numbers and arrays: SQLite stores greater ones."""
    return np.clip(amount, -LARGEST, LARGEST)


class Column:
    """Immutable.  Row n belongs to slot n, or to the n-th of ``slots`` where few providers have the class."""

    __slots__ = ("_arrays", "_slots", "_steps")

    def __init__(self, slots: Slots, arrays: Arrays, size: int) -> None:
        """:param slots: the providers that have the class, sorted.  :param arrays: each field of their inventories."""
        self._slots: Slots | None = slots
        arrays = (*arrays[:2], *map(whole, arrays[2:]))
        self._arrays = tuple(array.astype(kind) for array, kind in zip(arrays, _TYPES, strict=True))
        steps = self._arrays[4]
        steps[steps == 0] = 1  # 0 divides nothing, and cannot be a rule for what fits
        self._steps = bool((self._arrays[4] != 1).any())
        if len(slots) * _FEW >= size:
            self._spread(size)

    @classmethod
    def empty(cls) -> Column:
        """A class that no provider has."""
        return cls(np.empty(0, np.intp), (np.empty(0),) * len(_TYPES), 1)

    def _spread(self, size: int) -> None:
        """Have a row for every slot."""
        spread = []
        for array, nothing in zip(self._arrays, NOTHING, strict=True):
            wide = np.full(size, nothing, dtype=array.dtype)
            wide[slice(0, len(array)) if self._slots is None else self._slots] = array
            spread.append(wide)
        self._arrays, self._slots = tuple(spread), None

    def __len__(self) -> int:
        """How many rows are kept."""
        return len(self._arrays[0])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays) + (0 if self._slots is None else self._slots.nbytes)

    def _copied(self, arrays: Arrays, slots: Slots | None, steps: bool) -> Column:
        column = Column.__new__(Column)
        column._arrays, column._slots, column._steps = arrays, slots, steps
        return column

    # --- asking ---

    def fitting(self, amount: int, among: SlotSet) -> SlotSet:
        """Return the members of the set where the amount fits."""
        if amount > LARGEST or not len(self):
            return EMPTY
        among = among.compact()
        if among.is_sparse:
            return SlotSet.sparse(self._fitting_slots(amount, among.slots()))
        if self._slots is not None:
            return SlotSet.sparse(self._slots[self._fits(amount, self._arrays)]) & among
        fitting = self._fits(amount, self._arrays)
        # The snapshot may have more slots than it had when the column was made.
        return among & SlotSet.dense(fitting).resized(among.size)

    def _fitting_slots(self, amount: int, slots: Slots) -> Slots:
        rows, there = self._rows(slots)
        fitting = self._fits(amount, tuple(array.take(rows) for array in self._arrays))
        return slots[fitting if there is None else fitting & there]

    def _fits(self, amount: int, arrays: Arrays) -> Mask:
        capacity, used, min_unit, max_unit, step_size = arrays
        # Division is slow, and steps are rare.
        fitting: Mask = rule.fits(amount, used, capacity, min_unit, max_unit, step_size if self._steps else 1)
        return fitting

    def _rows(self, slots: Slots) -> tuple[Slots, Mask | None]:
        """The row of each slot, and for which of them there is one; None: for all."""
        if self._slots is None:
            if len(slots) and slots[-1] >= len(self):
                return np.minimum(slots, len(self) - 1), slots < len(self)
            return slots, None
        rows = np.minimum(np.searchsorted(self._slots, slots), len(self._slots) - 1)
        return rows, self._slots[rows] == slots

    def row(self, slot: int) -> int | None:
        """Where the slot's inventory is, if it has a row at all."""
        if self._slots is None:
            return slot if slot < len(self) else None
        row = int(np.searchsorted(self._slots, slot))
        return row if row < len(self._slots) and self._slots[row] == slot else None

    def inventory(self, slot: int) -> Inventory:
        """What the provider has; NOTHING if it has no such inventory."""
        row = self.row(slot)
        if row is None:
            return NOTHING
        return Inventory(*(array.item(row) for array in self._arrays))

    def available(self, size: int) -> npt.NDArray[np.int64]:
        """Return the largest sum of amounts that one consumer can be given, for every slot of the snapshot."""
        capacity, used, _, max_unit, _ = self._arrays
        rows: npt.NDArray[np.int64] = rule.available(used, capacity, max_unit).astype(np.int64)
        if self._slots is None and len(rows) == size:
            return rows
        available = np.zeros(size, dtype=np.int64)
        available[slice(0, len(rows)) if self._slots is None else self._slots] = rows
        return available

    def shown(self, slots: Slots) -> tuple[list[int], list[int]]:
        """Capacity, cut to whole units, and usage of providers that all have the class."""
        rows, _ = self._rows(slots)
        capacity, used = self._arrays[0].take(rows), self._arrays[1].take(rows)
        if len(rows) and capacity.max() > _EXACT:
            return [int(amount) for amount in capacity.tolist()], used.astype(np.int64).tolist()
        return capacity.astype(np.int64).tolist(), used.astype(np.int64).tolist()

    def usage(self) -> tuple[Slots, npt.NDArray[np.int64]]:
        """Slots, and what is used there; all others use nothing."""
        used = self._arrays[1].astype(np.int64)
        if self._slots is not None:
            return self._slots, used
        slots = np.flatnonzero(used)
        return slots, used[slots]

    # --- changing ---

    def with_usage(self, used: Mapping[int, int]) -> Column:
        """The column with other usage for some slots that have a row."""
        fresh = self._arrays[1].copy()
        for slot, amount in used.items():
            row = self.row(slot)
            if row is not None:
                fresh[row] = amount
        return self._copied((self._arrays[0], fresh, *self._arrays[2:]), self._slots, self._steps)

    def with_inventories(self, inventories: Mapping[int, Inventory], size: int) -> Column:
        """The column with other inventories for some slots; NOTHING takes one away."""
        column = self._copied(self._arrays, self._slots, self._steps)
        if column._slots is None:
            column._spread(size)
        else:
            column._insert_and_drop(inventories)
            column._arrays = tuple(array.copy() for array in column._arrays)
        for slot, inventory in inventories.items():
            row = column.row(slot)
            if row is None:
                continue
            for array, value in zip(column._arrays, inventory, strict=True):
                array[row] = value
            column._steps |= inventory.step_size != 1
        if column._slots is not None and len(column._slots) * _FEW >= size:
            column._spread(size)
        return column

    def _insert_and_drop(self, inventories: Mapping[int, Inventory]) -> None:
        assert self._slots is not None
        gone = [slot for slot, inventory in inventories.items() if inventory is NOTHING]
        here = [slot for slot, inventory in inventories.items() if inventory is not NOTHING]
        if gone:
            kept = ~np.isin(self._slots, gone)
            self._slots, self._arrays = self._slots[kept], tuple(array[kept] for array in self._arrays)
        fresh = np.setdiff1d(np.array(here, np.intp), self._slots)
        if len(fresh):
            places = np.searchsorted(self._slots, fresh)
            self._slots = np.insert(self._slots, places, fresh)
            self._arrays = tuple(
                np.insert(array, places, nothing) for array, nothing in zip(self._arrays, NOTHING, strict=True)
            )
