"""Which amounts inventories have room for, and which of their properties stands in the way of an amount."""

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
    """The allowed amounts of some inventories: the multiples of ``step`` from ``least`` on."""

    step: int
    least: int
    #: The largest allocation that one of the inventories has room for.
    most: int
    #: The largest allocation that each of them has room for.
    rooms: _Floats

    @property
    def bounds(self) -> list[int]:
        """The largest amounts that inventories have room for, ascending, each once."""
        return [int(room) for room in np.unique(self.rooms)]


class ClassInventories:
    """Inventories of one resource class, in the order of their slots; results are arrays in this order, too."""

    def __init__(self, inventories: Inventories) -> None:
        """Read the inventories.  Units get 64 bits, since the amount of a query may have more bits than a column."""
        self._inventories = inventories
        self.slots: Slots = inventories.slots
        self.min_unit: _Units = inventories.min_unit.astype(np.int64)
        self.max_unit: _Units = inventories.max_unit.astype(np.int64)
        self.step_size: _Units = inventories.step_size.astype(np.int64)

    def __len__(self) -> int:
        """Return the number of inventories."""
        return len(self.slots)

    def of(self, mask: Mask) -> ClassInventories:
        """Return the inventories where the mask, in their order, is true."""
        if mask.all():
            return self
        return self._rows(np.flatnonzero(mask))

    def at(self, slot: int) -> ClassInventories:
        """Return the inventory of one provider, or none."""
        row = np.searchsorted(self.slots, slot)
        return self._rows(slice(row, row + int(row < len(self) and self.slots[row] == slot)))

    def _rows(self, rows: Slots | slice) -> ClassInventories:
        return ClassInventories(Inventories(*[array[rows] for array in self._inventories]))  # type: ignore[arg-type]

    # --- what there is room for ---

    def largest(self, amount: int | None = None) -> _Floats:
        """Return the largest allocation that each inventory has room for, up to an amount; 0 where there is none."""
        return self._largest if amount is None else self._whole_steps(np.minimum(self._bound, amount))

    def smallest_above(self, amount: int) -> _Floats:
        """Return the smallest allocation of at least an amount that each has room for; 0 where there is none."""
        least = np.maximum(self.min_unit, amount).astype(np.float64)
        if self._has_steps:
            least = np.ceil(least / self.step_size) * self.step_size
        return np.where(least <= self._largest, least, 0.0)

    @cached_property
    def ever(self) -> _Floats:
        """The largest allocation that each inventory would have room for if nothing was used."""
        return self._whole_steps(np.minimum(self._capacity, self.max_unit))

    def fits(self, amount: int) -> Mask:
        """Return where an allocation of an amount is possible."""
        _, capacity, used, *_ = self._inventories
        step_size = self.step_size if self._has_steps else 1
        fitting: Mask = rule.fits(amount, used, capacity, self.min_unit, self.max_unit, step_size)
        return fitting

    @cached_property
    def _capacity(self) -> _Floats:
        return np.floor(self._inventories.capacity)

    @cached_property
    def _bound(self) -> _Floats:
        """The room of each inventory, whatever its step_size and min_unit."""
        return np.minimum(self._capacity - self._inventories.used, self.max_unit)

    @cached_property
    def _largest(self) -> _Floats:
        return self._whole_steps(self._bound)

    @cached_property
    def _least(self) -> _Units:
        return np.maximum(self.min_unit, 1)

    @cached_property
    def _has_steps(self) -> bool:
        return bool((self.step_size != 1).any())

    def _whole_steps(self, bound: _Floats) -> _Floats:
        """Return the largest amount up to a bound that the units allow, or 0; bounds are whole numbers."""
        amounts = np.floor(bound / self.step_size) * self.step_size if self._has_steps else bound
        return np.where(amounts >= self._least, amounts, 0.0)

    def by_units(self, amount: int) -> Iterator[AllowedAmounts]:
        """Yield the units of inventories that have room for an amount or less, those with most room first."""
        most = self.largest(amount)
        left = most > 0
        while left.any():
            first = int(np.where(left, most, 0).argmax())
            step, least = int(self.step_size[first]), int(self._least[first])
            same = left & (self.step_size == step) & (self._least == least)
            yield AllowedAmounts(step, -(-least // step) * step, int(most[first]), most[same])
            left &= ~same

    @property
    def uniform(self) -> bool:
        """Whether all inventories have the same units."""
        return bool(np.ptp(self.step_size) == 0 and np.ptp(self._least) == 0)

    def may_add_up(self, amount: int, snapshot: Snapshot, among: SlotSet | None) -> bool:
        """Whether several providers of a tree may give an amount together.

        Args:
            among: The roots of the trees to look at; None for all.
        """
        giving = self._largest > 0
        slots, room = self.slots[giving], (self._capacity - self._inventories.used)[giving]
        sharing = snapshot.with_trait(SHARES).mask(snapshot.size)[slots] if SHARES in snapshot.traits else slots < 0
        roots = snapshot.forest.roots(slots)
        # One provider cannot give more in parts: all that it gives counts as one allocation.
        several = (np.bincount(roots, minlength=1) > 1)[roots]
        enough = np.bincount(roots, room, minlength=1)[roots] + room[sharing].sum() >= amount
        looked_at = True if among is None else among.mask(snapshot.size)[roots]
        return bool((enough & (several | sharing.any()) & looked_at).any())

    def above(self, amount: int) -> list[int]:
        """Return the least larger amounts of inventories whose units forbid this one, ascending, each once."""
        refusing = (amount < self.min_unit) | (amount % self.step_size != 0)
        if not refusing.any():
            return []
        larger = self.smallest_above(amount)
        return [int(least) for least in np.unique(larger[refusing & (larger > 0)])]

    @cached_property
    def smallest(self) -> list[int]:
        """The smallest allocations that inventories have room for, ascending, each once."""
        smallest = self.smallest_above(1)
        return [int(amount) for amount in np.unique(smallest[smallest > 0])]

    # --- what stands in the way ---

    def blocking(self, amount: int) -> dict[str, int]:
        """Return, for each property, how many inventories cannot give an amount because of it.

        Of total, reserved and used, only the first that leaves too little counts.
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
    """Whether an amount is more than a bound that may not be a number."""
    return ~(amount <= bound)


class InventoriesByClass:
    """Reads the inventories of a snapshot, each class once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._stocks: dict[str, ClassInventories | None] = {}

    def stocks(self, resource_class: str) -> ClassInventories | None:
        """Return the inventories of a class; None if no provider has one."""
        if resource_class not in self._stocks:
            column = self._snapshot.column(resource_class)
            stocks = None if column is None else ClassInventories(column.inventories())
            self._stocks[resource_class] = stocks or None
        return self._stocks[resource_class]

    def in_the_way(
        self, resource_class: str, amount: int, before: SlotSet, after: SlotSet, avoided: SlotSet
    ) -> Shortfall:
        """Return why an amount does not fit at the providers of ``before`` that are not in ``after``."""
        removed = before.count - after.count
        stocks = self.stocks(resource_class)
        if stocks is None:
            return Shortfall(resource_class, amount, {"absent": removed} if removed else {}, 0)
        size = self._snapshot.size
        concerned = stocks.of(before.mask(size)[stocks.slots])
        refused = concerned.of(~after.mask(size)[concerned.slots])
        counts = {"absent": removed - len(refused), **refused.blocking(amount)}
        most = int(concerned.of(~avoided.mask(size)[concerned.slots]).largest().max(initial=0))
        return Shortfall(resource_class, amount, {name: count for name, count in counts.items() if count}, most)
