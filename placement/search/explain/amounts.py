"""Which property of an inventory stands in the way of an amount."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from placement.index.column import Inventories
from placement.index.slots import Mask, SlotSet
from placement.index.snapshot import Snapshot
from placement.objects import capacity as rule
from placement.search.explain.explanation import Shortfall

#: Above every amount that a query can state.
_UNBOUNDED = 2.0**53


class AmountsByClass:
    """Reads the inventories of a snapshot, each class once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._inventories: dict[str, Inventories | None] = {}

    def inventories(self, resource_class: str) -> Inventories | None:
        """Return the inventories of a class; None if no provider has one."""
        if resource_class not in self._inventories:
            column = self._snapshot.column(resource_class)
            inventories = None if column is None else _widened(column.inventories())
            self._inventories[resource_class] = inventories if inventories and len(inventories.slots) else None
        return self._inventories[resource_class]

    def in_the_way(self, resource_class: str, amount: int, before: SlotSet, after: SlotSet) -> Shortfall:
        """Return why an amount does not fit at the providers of ``before`` that are not in ``after``."""
        removed = before.count - after.count
        inventories = self.inventories(resource_class)
        if inventories is None:
            return Shortfall(resource_class, amount, {"absent": removed} if removed else {}, 0)
        size = self._snapshot.size
        concerned = rows(inventories, before.mask(size)[inventories.slots])
        refused = rows(concerned, ~after.mask(size)[concerned.slots])
        counts = {"absent": removed - len(refused.slots), **_blocking(refused, amount)}
        most = largest(concerned).max(initial=0)
        return Shortfall(resource_class, amount, {name: count for name, count in counts.items() if count}, int(most))


def _widened(inventories: Inventories) -> Inventories:
    """Return the inventories with units of 64 bits, since the amount of a query may have more bits than a column."""
    units: dict[str, Any] = {
        name: getattr(inventories, name).astype(np.int64) for name in ("min_unit", "max_unit", "step_size")
    }
    return inventories._replace(**units)


def largest(inventories: Inventories, amount: float = _UNBOUNDED) -> npt.NDArray[np.float64]:
    """Return the largest allocation that each inventory has room for, up to an amount; 0 where there is none."""
    room = np.floor(inventories.capacity) - inventories.used
    return _whole_steps(np.minimum(np.minimum(room, inventories.max_unit), amount), inventories)


def smallest_above(inventories: Inventories, amount: int) -> npt.NDArray[np.float64]:
    """Return the smallest allocation of at least an amount that each inventory has room for; 0 where there is none."""
    step = inventories.step_size.astype(np.float64)
    least = np.ceil(np.maximum(inventories.min_unit, amount) / step) * step
    return np.where(least <= largest(inventories), least, 0.0)


def ever(inventories: Inventories) -> npt.NDArray[np.float64]:
    """Return the largest allocation that each inventory would have room for if nothing was used."""
    return _whole_steps(np.minimum(np.floor(inventories.capacity), inventories.max_unit), inventories)


def _whole_steps(bound: npt.NDArray[np.float64], inventories: Inventories) -> npt.NDArray[np.float64]:
    """Return the largest amount up to a bound that the units allow, or 0."""
    amounts = np.floor(bound / inventories.step_size) * inventories.step_size
    return np.where(amounts >= np.maximum(inventories.min_unit, 1), amounts, 0.0)


def rows(inventories: Inventories, mask: Mask) -> Inventories:
    """Return the inventories where the mask, in their order, is true."""
    return Inventories(*[array[mask] for array in inventories])  # type: ignore[arg-type]


def _blocking(inventories: Inventories, amount: int) -> dict[str, int]:
    """Return how many inventories each property makes too small for the amount.

    Of total, reserved and used the first counts that leaves too little.
    """
    total = rule.capacity(inventories.total.astype(np.float64), 0, inventories.allocation_ratio)
    too_small = {
        "total": _exceeds(amount, total),
        "reserved": _exceeds(amount, inventories.capacity),
        "used": _exceeds(inventories.used + amount, inventories.capacity),
    }
    counts = {}
    counted: Any = np.zeros(len(inventories.slots), np.bool_)
    for name, mask in too_small.items():
        counts[name] = int(np.count_nonzero(mask & ~counted))
        counted = counted | mask
    counts["max_unit"] = int(np.count_nonzero(amount > inventories.max_unit))
    counts["min_unit"] = int(np.count_nonzero(amount < inventories.min_unit))
    counts["step_size"] = int(np.count_nonzero(amount % inventories.step_size))
    return counts


def _exceeds(amount: Any, bound: Any) -> Any:
    """Whether an amount is more than a bound that may not be a number."""
    return ~(amount <= bound)
