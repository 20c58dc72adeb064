"""The inventories of a resource class: the amounts they have room for, and the properties that block an amount."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from placement.extensions.v1.explain.explanation import Shortfall
from placement.index.column import Inventories
from placement.index.slots import Mask, Slots, SlotSet
from placement.index.snapshot import SHARES, Snapshot
from placement.objects import capacity as rule

_Floats = npt.NDArray[np.float64]
_Units = npt.NDArray[np.int64]


class AllowedAmounts(NamedTuple):
    """The amounts that inventories with the same units allow: the multiples of ``step`` from ``smallest`` on."""

    step: int
    smallest: int
    #: The largest allocation that any of the inventories has room for.
    largest: int
    #: The largest allocation that each inventory has room for.
    largest_by_inventory: _Floats

    @property
    def bounds(self) -> list[int]:
        """The distinct values of ``largest_by_inventory``, ascending."""
        return [int(amount) for amount in np.unique(self.largest_by_inventory)]


class ClassInventories:
    """Inventories of one resource class, ordered by slot; results are arrays in the same order."""

    def __init__(self, inventories: Inventories) -> None:
        """Read the inventories.  Units become 64 bits wide, since the amount of a query may exceed the column type."""
        self._inventories = inventories
        self.slots: Slots = inventories.slots
        self.min_unit: _Units = inventories.min_unit.astype(np.int64)
        self.max_unit: _Units = inventories.max_unit.astype(np.int64)
        self.step_size: _Units = inventories.step_size.astype(np.int64)

    def __len__(self) -> int:
        """Return the number of inventories."""
        return len(self.slots)

    def select(self, mask: Mask) -> ClassInventories:
        """Return the inventories selected by a mask over them."""
        if mask.all():
            return self
        return self._rows(np.flatnonzero(mask))

    def of_provider(self, slot: int) -> ClassInventories:
        """Return the inventory of one provider; empty if it has none."""
        row = np.searchsorted(self.slots, slot)
        return self._rows(slice(row, row + int(row < len(self) and self.slots[row] == slot)))

    def _rows(self, rows: Slots | slice) -> ClassInventories:
        return ClassInventories(Inventories(*[array[rows] for array in self._inventories]))  # type: ignore[arg-type]

    # --- amounts that fit ---

    def largest(self, amount: int | None = None) -> _Floats:
        """Return the largest allocation, up to an amount, that each inventory has room for, or 0."""
        return self._largest if amount is None else self._whole_steps(np.minimum(self._bound, amount))

    def smallest_above(self, amount: int) -> _Floats:
        """Return the smallest allocation of at least an amount that each inventory has room for, or 0."""
        least = np.maximum(self.min_unit, amount).astype(np.float64)
        if self._has_steps:
            least = np.ceil(least / self.step_size) * self.step_size
        return np.where(least <= self._largest, least, 0.0)

    @cached_property
    def largest_if_unused(self) -> _Floats:
        """The largest allocation that each inventory would have room for if nothing were used."""
        return self._whole_steps(np.minimum(self._capacity, self.max_unit))

    def fits(self, amount: int) -> Mask:
        """Return the mask of the inventories that can supply an amount."""
        _, capacity, used, *_ = self._inventories
        step_size = self.step_size if self._has_steps else 1
        fitting: Mask = rule.fits(amount, used, capacity, self.min_unit, self.max_unit, step_size)
        return fitting

    @cached_property
    def _capacity(self) -> _Floats:
        return np.floor(self._inventories.capacity)

    @cached_property
    def _bound(self) -> _Floats:
        """The free capacity of each inventory, up to max_unit."""
        return np.minimum(self._capacity - self._inventories.used, self.max_unit)

    @cached_property
    def _largest(self) -> _Floats:
        return self._whole_steps(self._bound)

    @cached_property
    def _least_units(self) -> _Units:
        return np.maximum(self.min_unit, 1)

    @cached_property
    def _has_steps(self) -> bool:
        return bool((self.step_size != 1).any())

    def _whole_steps(self, bound: _Floats) -> _Floats:
        """Return the largest amount up to each bound that the units allow, or 0; bounds are whole numbers."""
        amounts = np.floor(bound / self.step_size) * self.step_size if self._has_steps else bound
        return np.where(amounts >= self._least_units, amounts, 0.0)

    def allowed_amounts(self, amount: int) -> Iterator[AllowedAmounts]:
        """Yield the allowed amounts up to ``amount`` for each combination of units, the largest amount first."""
        largest = self.largest(amount)
        remaining = largest > 0
        while remaining.any():
            first = int(np.where(remaining, largest, 0).argmax())
            step, least = int(self.step_size[first]), int(self._least_units[first])
            same = remaining & (self.step_size == step) & (self._least_units == least)
            yield AllowedAmounts(step, -(-least // step) * step, int(largest[first]), largest[same])
            remaining &= ~same

    @property
    def uniform(self) -> bool:
        """Whether all inventories have the same units."""
        return bool(np.ptp(self.step_size) == 0 and np.ptp(self._least_units) == 0)

    def may_add_up(self, amount: int, snapshot: Snapshot, tree_roots: SlotSet | None) -> bool:
        """Whether several providers of a tree may supply an amount together.

        Args:
            tree_roots: Roots of the trees to check; None for all.
        """
        has_room = self._largest > 0
        slots, free = self.slots[has_room], (self._capacity - self._inventories.used)[has_room]
        sharing = snapshot.with_trait(SHARES).mask(snapshot.size)[slots] if SHARES in snapshot.traits else slots < 0
        roots = snapshot.forest.roots(slots)
        # Dividing an amount does not help a single provider: its amounts of a class form one allocation.
        multiple = (np.bincount(roots, minlength=1) > 1)[roots]
        sufficient = np.bincount(roots, free, minlength=1)[roots] + free[sharing].sum() >= amount
        selected = True if tree_roots is None else tree_roots.mask(snapshot.size)[roots]
        return bool((sufficient & (multiple | sharing.any()) & selected).any())

    def next_larger(self, amount: int) -> list[int]:
        """Return, for the inventories whose units forbid an amount, the next larger amounts: ascending, each once."""
        refusing = (amount < self.min_unit) | (amount % self.step_size != 0)
        if not refusing.any():
            return []
        larger = self.smallest_above(amount)
        return [int(least) for least in np.unique(larger[refusing & (larger > 0)])]

    @cached_property
    def smallest(self) -> list[int]:
        """The smallest allocations that inventories have room for: ascending, each once."""
        smallest = self.smallest_above(1)
        return [int(amount) for amount in np.unique(smallest[smallest > 0])]

    # --- obstacles ---

    def count_blocking(self, amount: int) -> dict[str, int]:
        """Return the number of inventories that each property prevents from supplying an amount.

        An inventory counts for only one of total, reserved and used: the first that leaves too little.
        """
        _, capacity, used, *_, total, _, ratio = self._inventories
        too_small = {
            "total": _exceeds(amount, rule.capacity(total.astype(np.float64), 0, ratio)),
            "reserved": _exceeds(amount, capacity),
            "used": _exceeds(used + amount, capacity),
        }
        counts = {}
        counted: Any = np.zeros(len(self), np.bool_)
        for name, mask in too_small.items():
            counts[name] = int(np.count_nonzero(mask & ~counted))
            counted = counted | mask
        counts["max_unit"] = int(np.count_nonzero(amount > self.max_unit))
        counts["min_unit"] = int(np.count_nonzero(amount < self.min_unit))
        counts["step_size"] = int(np.count_nonzero(amount % self.step_size)) if self._has_steps else 0
        return counts


def _exceeds(amount: Any, bound: Any) -> Any:
    """Whether an amount exceeds a bound; true for a bound that is NaN."""
    return ~(amount <= bound)


class InventoriesByClass:
    """The inventories of a snapshot by class, each class read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._by_class: dict[str, ClassInventories | None] = {}

    def of_class(self, resource_class: str) -> ClassInventories | None:
        """Return the inventories of a class; None if the class has none."""
        if resource_class not in self._by_class:
            column = self._snapshot.column(resource_class)
            inventories = None if column is None else ClassInventories(column.inventories())
            self._by_class[resource_class] = inventories or None
        return self._by_class[resource_class]

    def shortfall(
        self, resource_class: str, amount: int, before: SlotSet, after: SlotSet, avoided: SlotSet
    ) -> Shortfall:
        """Return the reasons why an amount does not fit on the providers in ``before`` that are not in ``after``."""
        removed = before.count - after.count
        inventories = self.of_class(resource_class)
        if inventories is None:
            return Shortfall(resource_class, amount, {"absent": removed} if removed else {}, 0)
        size = self._snapshot.size
        considered = inventories.select(before.mask(size)[inventories.slots])
        refused = considered.select(~after.mask(size)[considered.slots])
        counts = {"absent": removed - len(refused), **refused.count_blocking(amount)}
        largest = int(considered.select(~avoided.mask(size)[considered.slots]).largest().max(initial=0))
        return Shortfall(resource_class, amount, {name: count for name, count in counts.items() if count}, largest)
