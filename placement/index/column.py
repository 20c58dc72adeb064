"""The inventories of all providers in one resource class, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index.slots import EMPTY, Mask, Slots, SlotSet
from placement.objects import capacity as rule

Arrays = tuple[npt.NDArray[Any], ...]

#: Maximum amount that the database stores, and so the maximum of one allocation.
_MAX_AMOUNT = 2**31 - 1
#: Every integer up to this one is exact as a float.
_EXACT = 2.0**53
#: The number of slots per row above which a column is sparse.
_SPARSE_RATIO = 8


class Amounts(NamedTuple):
    """The inventory of one provider in the class, and its usage."""

    capacity: float
    used: float
    min_unit: int
    max_unit: int
    step_size: int
    #: The fields from which the capacity is computed.
    total: int
    reserved: int
    allocation_ratio: float

    def fits(self, amount: int) -> bool:
        """Whether an allocation of this amount fits."""
        return bool(rule.fits(amount, self.used, self.capacity, self.min_unit, self.max_unit, self.step_size))

    @property
    def available(self) -> int:
        """The largest total amount that one consumer can be allocated."""
        return int(rule.available(self.used, self.capacity, self.max_unit))


#: The amounts of a provider without inventory in the class.  No amount fits, because min_unit exceeds max_unit.  Only
#: this ratio is infinite; the ratios of inventories are finite.
ABSENT = Amounts(0.0, 0.0, 1, 0, 1, 0, 0, -np.inf)
_TYPES = (np.float64, np.float64, np.int32, np.int32, np.int32, np.int32, np.int32, np.float64)


def capacity_and_ratio(total: Any, reserved: Any, stored: Any) -> tuple[Any, Any]:
    """Return the capacity and the ratio of inventories for the ratio that the database stores."""
    ratio = rule.ratio(stored)
    return rule.capacity(total, reserved, ratio), ratio


def clamp(amount: Any) -> Any:
    """Limit a number or an array to the amounts that a column can hold; SQLite stores larger amounts."""
    return np.clip(amount, -_MAX_AMOUNT, _MAX_AMOUNT)


def to_integers(amounts: npt.NDArray[np.float64]) -> list[int]:
    """Return the amounts as integers, without fractions; with extreme ratios they exceed 64 bits."""
    if not len(amounts) or np.abs(amounts).max() <= _EXACT:
        return amounts.astype(np.int64).tolist()  # type: ignore[no-any-return]
    return [int(amount) for amount in amounts.tolist()]


class Inventories(NamedTuple):
    """The inventories of several providers, in the order of their slots: the fields of ``Amounts`` as arrays."""

    slots: Slots
    capacity: npt.NDArray[np.float64]
    used: npt.NDArray[np.float64]
    min_unit: npt.NDArray[np.int32]
    max_unit: npt.NDArray[np.int32]
    step_size: npt.NDArray[np.int32]
    total: npt.NDArray[np.int32]
    reserved: npt.NDArray[np.int32]
    allocation_ratio: npt.NDArray[np.float64]


class Totals(NamedTuple):
    """The sums over all inventories of a class; each capacity is rounded down first."""

    capacity: float = 0.0
    used: float = 0.0
    reserved: float = 0.0


class Column:
    """An immutable column.  Row n belongs to slot n if it is dense, and to the n-th of ``_slots`` if it is sparse."""

    __slots__ = ("_arrays", "_available", "_has_units", "_slots", "_totals")

    def __init__(self, slots: Slots, arrays: Arrays, size: int) -> None:
        """Build a column; it is sparse if few providers have the class.

        Args:
            slots: The slots of the providers with inventory in the class, ascending.
            arrays: The values of each field of Amounts, in the order of the slots.
            size: The number of slots of the snapshot.
        """
        self._slots: Slots | None = slots
        arrays = (*arrays[:2], *map(clamp, arrays[2:-1]), arrays[-1])
        self._arrays = tuple(array.astype(kind) for array, kind in zip(arrays, _TYPES, strict=True))
        steps = self._arrays[4]
        steps[steps == 0] = 1  # a step size of 0 is inconsistent, and cannot be a divisor
        #: Whether any min_unit exceeds 1, or any step size differs from 1.
        self._has_units = bool((self._arrays[2] > 1).any() or (steps != 1).any())
        self._totals: Totals | None = None
        if len(slots) * _SPARSE_RATIO >= size:
            self._make_dense(size)
        self._compute_available()

    @classmethod
    def empty(cls) -> Column:
        """Return the column of a class that no provider has."""
        return cls(np.empty(0, np.intp), (np.empty(0),) * len(_TYPES), 1)

    def _make_dense(self, size: int) -> None:
        """Add a row for every slot without one; to be called only while this column is built."""
        dense = []
        for array, absent in zip(self._arrays, ABSENT, strict=True):
            wide = np.full(size, absent, dtype=array.dtype)
            wide[slice(0, len(array)) if self._slots is None else self._slots] = array
            dense.append(wide)
        self._arrays, self._slots = tuple(dense), None

    def _compute_available(self) -> None:
        """Compute what ``available`` returns, by row; to be called only while this column is built.

        A search reads 4 bytes of a row instead of the 24 bytes from which they are computed.
        """
        capacity, used, _, max_unit, *_ = self._arrays
        self._available: npt.NDArray[np.int32] = rule.available(used, capacity, max_unit).astype(np.int32)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._arrays[0])

    def _copy(self, arrays: Arrays) -> Column:
        column = Column.__new__(Column)
        column._arrays, column._available, column._totals = arrays, self._available, None
        column._slots, column._has_units = self._slots, self._has_units
        return column

    # --- reading ---

    def fitting_slots(self, amount: int, slots: SlotSet) -> SlotSet:
        """Return the members of the set where the amount, which must be positive, fits."""
        assert amount > 0, amount
        if amount > _MAX_AMOUNT or not len(self):
            return EMPTY
        slots = slots.compact()
        if slots.is_sparse:
            return SlotSet.sparse(self._fitting_slots(amount, slots.slots()))
        if self._slots is not None:
            return SlotSet.sparse(self._slots[self._fits(amount)]) & slots
        # The snapshot may have more slots than the one for which the column was built.
        return slots & SlotSet.dense(self._fits(amount)).resize(slots.size)

    def _fitting_slots(self, amount: int, slots: Slots) -> Slots:
        rows, present = self._rows(slots)
        fitting = self._fits(amount, rows)
        return slots[fitting if present is None else fitting & present]

    def _fits(self, amount: int, rows: Slots | None = None) -> Mask:
        """Whether the amount fits, by row; ``rows`` are all rows by default."""

        def of_rows(array: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
            return array if rows is None else array.take(rows)

        fitting: Mask = of_rows(self._available) >= amount
        # Division is slow, and units other than 1 are rare.
        if self._has_units:
            fitting &= rule.within_units(amount, *map(of_rows, self._arrays[2:5]))
        return fitting

    def _rows(self, slots: Slots) -> tuple[Slots, Mask | None]:
        """Return the row of each slot, and a mask of the slots that have a row; None if all have one."""
        if self._slots is None:
            if len(slots) and slots[-1] >= len(self):
                return np.minimum(slots, len(self) - 1), slots < len(self)
            return slots, None
        rows = np.minimum(np.searchsorted(self._slots, slots), len(self._slots) - 1)
        return rows, self._slots[rows] == slots

    def _row(self, slot: int) -> int | None:
        """Return the row of a slot, or None."""
        if self._slots is None:
            return slot if slot < len(self) else None
        row = int(np.searchsorted(self._slots, slot))
        return row if row < len(self._slots) and self._slots[row] == slot else None

    def amounts(self, slot: int) -> Amounts:
        """Return the amounts of one provider; they equal ABSENT if it has no inventory in the class."""
        row = self._row(slot)
        if row is None:
            return ABSENT
        return Amounts(*(array.item(row) for array in self._arrays))

    def available(self, size: int) -> npt.NDArray[np.int32]:
        """Return the largest total amount that one consumer can be allocated, for every slot of the snapshot.

        The caller must not change the array.
        """
        rows = self._available
        if self._slots is None and len(rows) == size:
            return rows
        available = np.zeros(size, dtype=np.int32)
        available[slice(0, len(rows)) if self._slots is None else self._slots] = rows
        return available

    def capacity_and_usage(self, slots: Slots) -> tuple[list[int], list[int]]:
        """Return the capacities, rounded down, and the usages of providers that all have the class."""
        capacity, used = self.exact_capacity_and_usage(slots)
        return to_integers(capacity), used.astype(np.int64).tolist()

    def exact_capacity_and_usage(self, slots: Slots) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the capacities, with fractions, and the usages of providers that all have the class."""
        rows = slots if self._slots is None else np.searchsorted(self._slots, slots)
        return self._arrays[0].take(rows), self._arrays[1].take(rows)

    def inventories(self) -> Inventories:
        """Return all inventories in the class."""
        if self._slots is not None:
            return Inventories(self._slots, *self._arrays)
        present = np.flatnonzero(self._arrays[-1] != ABSENT.allocation_ratio)
        return Inventories(present, *(array.take(present) for array in self._arrays))

    def inventories_of(self, slots: Slots) -> Inventories:
        """Return the inventories of these providers; a provider without inventory in the class is left out.

        Args:
            slots: Sorted.
        """
        if not len(self):
            return Inventories(slots[:0], *self._arrays)
        rows, present = self._rows(slots)
        if self._slots is None:
            has_class = self._arrays[-1].take(rows) != ABSENT.allocation_ratio
            present = has_class if present is None else present & has_class
        if present is not None:
            slots, rows = slots[present], rows[present]
        return Inventories(slots, *(array.take(rows) for array in self._arrays))

    def over_committed(self) -> Slots:
        """Return the slots of the over-committed providers, whose usage exceeds their capacity."""
        inventories = self.inventories()
        slots: Slots = inventories.slots[~rule.within_capacity(0, inventories.used, inventories.capacity)]
        return slots

    def totals(self) -> Totals:
        """Return the sums over all providers; computed once, since most columns outlive many snapshots."""
        if self._totals is None:
            capacity, used, *_, reserved, _ = self._arrays  # the fields of ABSENT summed here are 0
            self._totals = Totals(float(np.floor(capacity).sum()), float(used.sum()), float(reserved.sum()))
        return self._totals

    def usage(self) -> tuple[Slots, npt.NDArray[np.int64]]:
        """Return slots and their usages; the usage of all other slots is 0."""
        used = self._arrays[1].astype(np.int64)
        if self._slots is not None:
            return self._slots, used
        slots = np.flatnonzero(used)
        return slots, used[slots]

    # --- changed copies ---

    def with_usage(self, used: Mapping[int, int]) -> Column:
        """Return the column with these usages, by slot; slots without a row are ignored."""
        capacity, _, _, max_unit, *_ = self._arrays
        usage, available = self._arrays[1].copy(), self._available.copy()
        for slot, amount in used.items():
            row = self._row(slot)
            if row is not None:
                usage[row] = amount
                available[row] = rule.available(amount, capacity[row], max_unit[row])
        column = self._copy((capacity, usage, *self._arrays[2:]))
        column._available = available
        return column

    def with_inventories(self, inventories: Mapping[int, Amounts], size: int) -> Column:
        """Return the column with these inventories, by slot; ABSENT removes an inventory."""
        column = self._copy(self._arrays)
        if column._slots is None:
            column._make_dense(size)
        else:
            column._insert_and_drop(inventories)
            column._arrays = tuple(array.copy() for array in column._arrays)
        for slot, inventory in inventories.items():
            row = column._row(slot)
            if row is None:
                continue
            for array, value in zip(column._arrays, inventory, strict=True):
                array[row] = value
            column._has_units |= inventory.min_unit > 1 or inventory.step_size != 1
        if column._slots is not None and len(column._slots) * _SPARSE_RATIO >= size:
            column._make_dense(size)
        column._compute_available()
        return column

    def _insert_and_drop(self, inventories: Mapping[int, Amounts]) -> None:
        """Drop the rows of removed inventories, and insert ABSENT rows for new inventories."""
        assert self._slots is not None
        removed = [slot for slot, inventory in inventories.items() if inventory is ABSENT]
        present = [slot for slot, inventory in inventories.items() if inventory is not ABSENT]
        if removed:
            remaining = ~np.isin(self._slots, removed)
            self._slots, self._arrays = self._slots[remaining], tuple(array[remaining] for array in self._arrays)
        added = np.setdiff1d(np.array(present, np.intp), self._slots)
        if len(added):
            rows = np.searchsorted(self._slots, added)
            self._slots = np.insert(self._slots, rows, added)
            self._arrays = tuple(
                np.insert(array, rows, absent) for array, absent in zip(self._arrays, ABSENT, strict=True)
            )
