"""The inputs of every step of a count: the query, free capacity as arrays over all slots, and the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.index.slots import Slots
from placement.search.budget import Budget
from placement.search.narrow.narrowing import Eligible, Narrowed
from placement.search.query.query import UNSUFFIXED
from placement.search.refusals import COMBINATION
from placement.search.solver.problem import Requirements

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Maximum number of copies counted on one provider: sums over all providers stay exact as floats.
MAX_COPIES = 2**36
#: Maximum free capacity of a class on one provider; with absurd allocation ratios, capacities exceed 64 bits.
_MAX_FREE = 2.0**52


@dataclass(frozen=True, slots=True)
class DemandKind:
    """Equal demands: the same amounts from the same providers.  One placement includes all of them."""

    eligible: Eligible
    amounts: Mapping[str, int]
    #: Whether each demand needs its own provider, not shared with any isolated demand of the placement.
    isolated: bool
    #: Number of these demands in a placement.
    times: int


def _kinds_of(narrowed: Narrowed, requirements: Requirements) -> list[DemandKind]:
    """Return the kinds of the demands, in query order."""
    times: dict[tuple[int, bool], int] = {}
    first: dict[tuple[int, bool], DemandKind] = {}
    for demand, eligible in zip(requirements.demands, narrowed.eligible, strict=True):
        isolated = requirements.isolate and demand.suffix != UNSUFFIXED
        key = id(eligible), isolated
        times[key] = times.get(key, 0) + 1
        first.setdefault(key, DemandKind(eligible, demand.amounts, isolated, 1))
    return [DemandKind(kind.eligible, kind.amounts, kind.isolated, times[key]) for key, kind in first.items()]


class CountInputs:
    """A narrowed query and the free capacity for it.

    Attributes:
        kinds: The kinds of demands, in query order.
        free: Free capacity by class and slot.
        largest: The largest amount that one consumer may hold, by class and slot: max_unit, or 2**52 where only
            free capacity limits it.
        rounded: Whether the free capacity of a class is too large for exact sums.
        budget: The budget of the whole count.
        rules: The rules that may limit counts, named as in refusals: ``resources:VCPU``, ``group_policy``.
    """

    __slots__ = (
        "budget",
        "free",
        "kinds",
        "largest",
        "narrowed",
        "requirements",
        "rounded",
        "rules",
        "size",
        "snapshot",
    )

    def __init__(self, narrowed: Narrowed, budget: Budget) -> None:
        """Read the columns of the classes of the query."""
        self.narrowed = narrowed
        self.snapshot = narrowed.snapshot
        self.size = self.snapshot.size
        self.requirements = Requirements.from_query(narrowed.query)
        self.kinds = _kinds_of(narrowed, self.requirements)
        self.budget = budget
        self.rules = [COMBINATION]
        self.rounded = False
        self.free: dict[str, Integers] = {}
        self.largest: dict[str, Integers] = {}
        for name in self.requirements.total:
            self.free[name] = np.zeros(self.size, np.int64)
            self.largest[name] = np.full(self.size, _MAX_FREE, np.int64)
            column = self.snapshot.column(name)
            if column is None:
                continue
            inventories = column.inventories()
            free = np.clip(np.floor(inventories.capacity) - inventories.used, 0, _MAX_FREE)
            self.rounded |= float(free.sum()) >= _MAX_FREE
            self.free[name][inventories.slots] = free
            limited = inventories.max_unit < free
            self.largest[name][inventories.slots[limited]] = inventories.max_unit[limited]

    def position(self, rule: str) -> int:
        """Return the position of a rule in ``rules``, appended unless present."""
        if rule not in self.rules:
            self.rules.append(rule)
        return self.rules.index(rule)

    def copies(self, amounts: Mapping[str, int], slots: Slots) -> Integers:
        """Return the number of times that each provider can supply the amounts; ``MAX_COPIES`` without amounts."""
        return _times(self.free, amounts, slots)

    def at_once(self, amounts: Mapping[str, int], slots: Slots) -> Integers:
        """Return the number of times that each provider may supply one consumer, regardless of free capacity."""
        return _times(self.largest, amounts, slots)


def _times(available: Mapping[str, Integers], amounts: Mapping[str, int], slots: Slots) -> Integers:
    times = np.full(len(slots), MAX_COPIES, np.int64)
    for name, amount in amounts.items():
        np.minimum(times, available[name][slots] // amount, out=times)
    return times
