"""How full something is in one resource class."""

from __future__ import annotations

from dataclasses import dataclass

from placement.index.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ClassLevel:
    """The inventory of one provider in a class, or the sum of many, and how much of it is used.

    Args:
        total: What there is, before the allocation ratio.
        reserved: What of it is not given away.
        capacity: What can be given away: (total - reserved) * allocation ratio, rounded down.
        used: What is given away; more than the capacity if that was lowered.
    """

    resource_class: str
    total: int
    reserved: int
    capacity: int
    used: int

    @property
    def free(self) -> int:
        """What can still be given away."""
        return max(self.capacity - self.used, 0)

    @property
    def is_over(self) -> bool:
        """Whether more is used than the capacity allows."""
        return self.used > self.capacity

    # --- the bar, in percent of its width: used from the left, reserved at the right.  Where more is used than the
    # --- capacity, the whole bar is what is used, and what is over follows after the capacity. ---

    @property
    def reserved_width(self) -> float:
        """The part that is reserved, of all that there is."""
        return 0.0 if self.is_over else _percent(self.reserved, self.total)

    @property
    def used_width(self) -> float:
        """The part that is used and within the capacity."""
        if self.is_over:
            return _percent(self.capacity, self.used)
        return self._width(self.used)

    @property
    def over_width(self) -> float:
        """The part that is used beyond the capacity."""
        return round(100 - self.used_width, 2) if self.is_over else 0.0

    def taken_width(self, amount: int) -> float:
        """Return the share of what is free that an amount would take."""
        return 0.0 if self.is_over else round(min(self._width(amount), 100 - self.reserved_width - self.used_width), 2)

    def _width(self, amount: int) -> float:
        return round(_percent(amount, self.capacity) * (100 - self.reserved_width) / 100, 2)

    @property
    def percent(self) -> int:
        """How much of the capacity is used, in percent; over 100 where more is used."""
        if self.capacity <= 0:
            return 100 if self.used else 0
        return int(100 * self.used / self.capacity)


def levels_of(snapshot: Snapshot, slot: int) -> tuple[ClassLevel, ...]:
    """Return the levels of one provider, by the name of the class."""
    found = []
    for class_id in snapshot.provider(slot).classes:
        name = snapshot.class_names.get(class_id)
        if name is not None:
            amounts = snapshot.columns[class_id].amounts(slot)
            found.append(ClassLevel(name, amounts.total, amounts.reserved, int(amounts.capacity), int(amounts.used)))
    return tuple(sorted(found, key=lambda level: level.resource_class))


def _percent(part: float, of: float) -> float:
    """Return the share in percent, from 0 to 100."""
    if of <= 0:
        return 100.0 if part > 0 else 0.0
    return round(min(max(100 * part / of, 0.0), 100.0), 2)
