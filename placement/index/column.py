"""The inventories of all providers in one resource class, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index.arrays import Arrays
from placement.index.patched import merge_rows
from placement.index.slots import EMPTY, Mask, Slots, SlotSet, is_sparse, positions_in
from placement.objects import capacity as rule

Available = npt.NDArray[np.int32]
#: The fields of ``Amounts``, each as an array.
Fields = tuple[npt.NDArray[Any], ...]

#: Maximum amount that the database stores, and so the maximum of one allocation.
LARGEST_AMOUNT = 2**31 - 1
#: Every integer up to this one is exact as a float.
_EXACT = 2.0**53


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


#: The numbers of the fields that constrain the units of one allocation: min_unit, max_unit, step_size.
_UNIT_FIELDS = (2, 3, 4)
#: The number of the available amount, which is computed from the fields.
_AVAILABLE = len(ABSENT)
_ALL_ABSENT, _ALL_TYPES = (*ABSENT, 0), (*_TYPES, np.int32)


def capacity_and_ratio(total: Any, reserved: Any, stored: Any) -> tuple[Any, Any]:
    """Return the capacity and the ratio of inventories for the ratio that the database stores."""
    ratio = rule.ratio(stored)
    return rule.capacity(total, reserved, ratio), ratio


def clamp(amount: Any) -> Any:
    """Limit a number or an array to the amounts that a column can hold; SQLite stores larger amounts."""
    return np.clip(amount, -LARGEST_AMOUNT, LARGEST_AMOUNT)


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


class _Rows:
    """Inventories as arrays.  Row n belongs to slot n if they are dense, and to the n-th of ``slots`` if sparse."""

    __slots__ = ("_sums", "available", "fields", "has_units", "slots")

    def __init__(self, fields: Fields, available: Available, slots: Slots | None) -> None:
        self.fields = fields
        #: The available amounts.  A search reads these 4 bytes of a row, not the 20 of capacity, used and max_unit.
        self.available = available
        self.slots = slots
        self.has_units = _have_units(fields)
        self._sums: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.fields[0])

    def field(self, number: int) -> npt.NDArray[Any]:
        """Return a field by its number, or the available amounts."""
        return self.available if number == _AVAILABLE else self.fields[number]

    def row(self, slot: int) -> int | None:
        """Return the row of a slot, or None."""
        if self.slots is None:
            return slot if slot < len(self) else None
        row = int(np.searchsorted(self.slots, slot))
        return row if row < len(self.slots) and self.slots[row] == slot else None

    def rows(self, slots: Slots) -> tuple[Slots, Mask | None]:
        """Return the row of each slot, and a mask of the slots that have a row; None if all have one."""
        if self.slots is None:
            if len(slots) and slots.max() >= len(self):
                return np.minimum(slots, max(len(self) - 1, 0)), slots < len(self)
            return slots, None
        return positions_in(self.slots, slots)

    def sums(self) -> npt.NDArray[np.float64]:
        """Return the sums; computed once, since the rows outlive many snapshots."""
        if self._sums is None:
            self._sums = _sums(self.fields)
        return self._sums


def _have_units(fields: Fields) -> bool:
    """Whether any min_unit exceeds 1, or any step size differs from 1."""
    return bool((fields[2] > 1).any() or (fields[4] != 1).any())


def _available(fields: Fields) -> Available:
    capacity, used, _, max_unit, *_ = fields
    available: Available = rule.available(used, capacity, max_unit).astype(np.int32)
    return available


def _fits(amount: int, available: Available, units: Sequence[npt.NDArray[Any]]) -> Mask:
    """Return a mask of the rows where the amount fits.

    Args:
        amount: A positive amount.
        available: The available amounts.
        units: The unit constraints, or nothing if all are 1: division is slow, and other units are rare.
    """
    fitting: Mask = available >= amount
    if units:
        fitting &= rule.within_units(amount, *units)
    return fitting


def _sums(fields: Fields) -> npt.NDArray[np.float64]:
    """Return the sums of ``Totals``, the number of inventories, and the sum of the absolute capacities."""
    capacity, used, *_, reserved, ratio = fields  # the fields of ABSENT summed here are 0
    capacity = np.floor(capacity)
    count = np.count_nonzero(ratio != ABSENT.allocation_ratio)
    return np.array([capacity.sum(), used.sum(), reserved.sum(), count, np.abs(capacity).sum()])


class Column:
    """An immutable column: rows that columns share, and the rows of the slots that have changed since."""

    __slots__ = ("_changed_slots", "_changes", "_rows")

    def __init__(self, rows: _Rows, changed_slots: Slots, changes: Fields) -> None:
        """Store the rows; ``from_arrays`` and ``empty`` create columns.

        Args:
            rows: The shared rows.
            changed_slots: The slots that have changed, sorted.
            changes: The present amounts of these slots; ABSENT without inventory.
        """
        self._rows = rows
        self._changed_slots = changed_slots
        self._changes = changes

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Column:
        """Return the column of the arrays that ``column_arrays`` returns."""
        rows = _Rows(tuple(arrays[field] for field in Amounts._fields), arrays["available"], arrays.get("slots"))
        return cls(rows, np.empty(0, np.intp), _NO_ROWS)

    @classmethod
    def empty(cls) -> Column:
        """Return the column of a class that no provider has."""
        slots = np.empty(0, np.intp)
        return cls(_Rows(_NO_ROWS, _available(_NO_ROWS), slots), slots, _NO_ROWS)

    @property
    def changes(self) -> int:
        """The number of slots that differ from the shared rows."""
        return len(self._changed_slots)

    def __bool__(self) -> bool:
        """Whether any provider may have inventory in the class."""
        return bool(len(self._rows) or len(self._changed_slots))

    # --- reading ---

    def fitting_slots(self, amount: int, slots: SlotSet) -> SlotSet:
        """Return the members of the set where the amount, which must be positive, fits."""
        assert amount > 0, amount
        if amount > LARGEST_AMOUNT or not self:
            return EMPTY
        has_units = self._rows.has_units or _have_units(self._changes)
        fields = _UNIT_FIELDS if has_units else ()
        slots = slots.compact()
        if slots.is_sparse:
            members = slots.slots()
            available, *units = self._values(members, (_AVAILABLE, *fields))
            return SlotSet.sparse(members[_fits(amount, available, units)])
        fitting = _fits(amount, self._rows.available, [self._rows.fields[field] for field in fields])
        changed_fitting = _fits(amount, _available(self._changes), [self._changes[field] for field in fields])
        if self._rows.slots is None:
            if len(fitting) != slots.size:
                # The snapshot may have more slots than the one for which the rows were built.
                fitting = SlotSet.dense(fitting).mask(slots.size)
            fitting[self._changed_slots] = changed_fitting
            return slots & SlotSet.dense(fitting)
        rows, has_row = positions_in(self._rows.slots, self._changed_slots)
        fitting[rows[has_row]] = changed_fitting[has_row]
        fitting_slots = self._rows.slots[fitting]
        inserted = self._changed_slots[changed_fitting & ~has_row]
        if len(inserted):
            fitting_slots = np.insert(fitting_slots, fitting_slots.searchsorted(inserted), inserted)
        return SlotSet.sparse(fitting_slots) & slots

    def _values(self, slots: Slots, fields: Sequence[int] = range(len(ABSENT))) -> list[npt.NDArray[Any]]:
        """Return fields, by their numbers, of these slots; a slot without inventory has the values of ABSENT."""
        rows, present = self._rows.rows(slots)
        if not len(self._rows):
            present = np.zeros(len(slots), np.bool_)
            columns = [np.full(len(slots), _ALL_ABSENT[field], _ALL_TYPES[field]) for field in fields]
        else:
            columns = [self._rows.field(field).take(rows) for field in fields]
        if present is not None and not present.all():
            for field, column in zip(fields, columns, strict=True):
                column[~present] = _ALL_ABSENT[field]
        if len(self._changed_slots):
            positions, is_changed = positions_in(self._changed_slots, slots)
            positions = positions[is_changed]
            for field, column in zip(fields, columns, strict=True):
                changes = _available(self._changes) if field == _AVAILABLE else self._changes[field]
                column[is_changed] = changes[positions]
        return columns

    def amounts(self, slot: int) -> Amounts:
        """Return the amounts of one provider; they equal ABSENT if it has no inventory in the class."""
        position = int(np.searchsorted(self._changed_slots, slot))
        if position < len(self._changed_slots) and self._changed_slots[position] == slot:
            return Amounts(*(field.item(position) for field in self._changes))
        row = self._rows.row(slot)
        if row is None:
            return ABSENT
        return Amounts(*(field.item(row) for field in self._rows.fields))

    def available(self, size: int) -> Available:
        """Return the largest total amount that one consumer can be allocated, for every slot of the snapshot.

        The caller must not change the array.
        """
        rows = self._rows.available
        if self._rows.slots is None and len(rows) == size:
            if not len(self._changed_slots):
                return rows
            available = rows.copy()
        else:
            available = np.zeros(size, dtype=np.int32)
            available[slice(0, len(rows)) if self._rows.slots is None else self._rows.slots] = rows
        available[self._changed_slots] = _available(self._changes)
        return available

    def capacity_and_usage(self, slots: Slots) -> tuple[list[int], list[int]]:
        """Return the capacities, rounded down, and the usages of providers that all have the class."""
        capacity, used = self.exact_capacity_and_usage(slots)
        return to_integers(capacity), used.astype(np.int64).tolist()

    def exact_capacity_and_usage(self, slots: Slots) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the capacities, with fractions, and the usages of providers that all have the class."""
        capacity, used = self._values(slots, (0, 1))
        return capacity, used

    def inventories(self) -> Inventories:
        """Return all inventories in the class."""
        fields = self._rows.fields
        slots = np.arange(len(self._rows)) if self._rows.slots is None else self._rows.slots
        if len(self._changed_slots):
            slots, fields = merge_rows(slots, fields, self._changed_slots, self._changes)
        return _present(slots, fields)

    def inventories_of(self, slots: Slots) -> Inventories:
        """Return the inventories of these providers; a provider without inventory in the class is left out.

        Args:
            slots: Sorted.
        """
        return _present(slots, tuple(self._values(slots)))

    def over_committed(self) -> Slots:
        """Return the slots of the over-committed providers, whose usage exceeds their capacity."""
        inventories = self.inventories()
        slots: Slots = inventories.slots[~rule.within_capacity(0, inventories.used, inventories.capacity)]
        return slots

    @property
    def has_inventories(self) -> bool:
        """Whether any provider has inventory in the class."""
        return bool(self._sums()[3])

    def totals(self) -> Totals:
        """Return the sums over all providers."""
        return Totals(*self._sums()[:3].tolist())

    def _sums(self) -> npt.NDArray[np.float64]:
        sums = self._rows.sums()
        if not len(self._changed_slots):
            return sums
        if sums[-1] > _EXACT:
            return _sums(self.inventories()[1:])  # a difference of such sums would lose small amounts
        before = Column(self._rows, self._changed_slots[:0], _NO_ROWS)._values(self._changed_slots)
        return sums - _sums(tuple(before)) + _sums(self._changes)  # exact: all numbers are whole

    def usage(self) -> tuple[Slots, npt.NDArray[np.int64]]:
        """Return slots and their usages; the usage of all other slots is 0."""
        used = self._rows.fields[1]
        slots = np.flatnonzero(used) if self._rows.slots is None else self._rows.slots
        used = used[slots] if self._rows.slots is None else used
        if len(self._changed_slots):
            slots, (used,) = merge_rows(slots, [used], self._changed_slots, [self._changes[1]])
        return slots, used.astype(np.int64)

    def usage_of(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Return the usage of each slot; 0 without inventory in the class."""
        (used,) = self._values(slots, [1])
        return used.astype(np.int64)

    # --- changed copies ---

    def with_usage(self, used: Mapping[int, int]) -> Column:
        """Return the column with these usages, by slot; slots without inventory in the class are ignored."""
        inventories = self.inventories_of(np.array(sorted(used), dtype=np.intp))
        usages = np.array([used[slot] for slot in inventories.slots.tolist()], dtype=np.float64)
        slots, *fields = inventories._replace(used=usages)
        return self._with_rows(slots, fields)

    def with_inventories(self, inventories: Mapping[int, Amounts]) -> Column:
        """Return the column with these inventories, by slot; ABSENT removes an inventory."""
        slots = sorted(inventories)
        rows = zip(*(inventories[slot] for slot in slots), strict=True)
        fields = [np.array(values, dtype=kind) for values, kind in zip(rows, _TYPES, strict=True)]
        return self._with_rows(np.array(slots, dtype=np.intp), fields)

    def _with_rows(self, slots: Slots, fields: Sequence[Any]) -> Column:
        return Column(self._rows, *merge_rows(self._changed_slots, self._changes, slots, fields))


#: Fields without rows.
_NO_ROWS: Fields = tuple(np.empty(0, kind) for kind in _TYPES)


def column_arrays(slots: Slots, fields: Fields, size: int) -> Arrays:
    """Return the arrays of a column; they are sparse if few providers have the class.

    Args:
        slots: The slots of the providers with inventory in the class, ascending.
        fields: The values of each field of Amounts, in the order of the slots.
        size: The number of slots of the snapshot.
    """
    clamped = (*fields[:2], *map(clamp, fields[2:-1]), fields[-1])
    arrays = {name: field.astype(kind) for name, field, kind in zip(Amounts._fields, clamped, _TYPES, strict=True)}
    steps = arrays["step_size"]
    steps[steps == 0] = 1  # a step size of 0 is inconsistent, and cannot be a divisor
    arrays["available"] = _available(tuple(arrays.values()))
    if is_sparse(len(slots), size):
        return {"slots": slots, **arrays}
    for name, absent in zip((*Amounts._fields, "available"), _ALL_ABSENT, strict=True):
        dense = np.full(size, absent, dtype=arrays[name].dtype)
        dense[slots] = arrays[name]
        arrays[name] = dense
    return arrays


def _present(slots: Slots, fields: Fields) -> Inventories:
    """Return the rows that are not ABSENT."""
    rows = np.flatnonzero(fields[-1] != ABSENT.allocation_ratio)
    if len(rows) == len(slots):
        return Inventories(slots, *fields)
    return Inventories(slots.take(rows), *(field.take(rows) for field in fields))
