"""Usage of one resource class, and the bar that shows it."""

from __future__ import annotations

from dataclasses import dataclass

from placement.index.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ClassLevel:
    """Inventory and usage of a class, of one provider or summed over several.

    Attributes:
        total: The amount before the allocation ratio.
        reserved: The part of ``total`` that is never allocated.
        capacity: (total - reserved) * allocation ratio, rounded down.
        used: The allocated amount, which exceeds the capacity if the class is over-committed.
    """

    resource_class: str
    total: int
    reserved: int
    capacity: int
    used: int

    @property
    def free(self) -> int:
        """Free capacity."""
        return max(self.capacity - self.used, 0)

    @property
    def is_over(self) -> bool:
        """Whether the class is over-committed."""
        return self.used > self.capacity

    # --- the bar ---
    # Widths are in percent.  Used is at the left, reserved at the right.  If the class is over-committed, the whole bar
    # is the usage: the part within the capacity, then the excess.

    @property
    def reserved_width(self) -> float:
        """Width of the reserved part."""
        return 0.0 if self.is_over else _percent(self.reserved, self.total)

    @property
    def used_width(self) -> float:
        """Width of the usage within the capacity."""
        if self.is_over:
            return _percent(self.capacity, self.used)
        return self._width(self.used)

    @property
    def over_width(self) -> float:
        """Width of the usage above the capacity."""
        return round(100 - self.used_width, 2) if self.is_over else 0.0

    def taken_width(self, amount: int) -> float:
        """Return the width of an amount taken from the free capacity."""
        return 0.0 if self.is_over else round(min(self._width(amount), 100 - self.reserved_width - self.used_width), 2)

    def _width(self, amount: int) -> float:
        return round(_percent(amount, self.capacity) * (100 - self.reserved_width) / 100, 2)

    @property
    def percent(self) -> int:
        """Used share of the capacity in percent; above 100 if over-committed."""
        if self.capacity <= 0:
            return 100 if self.used else 0
        return int(100 * self.used / self.capacity)


def levels_of(snapshot: Snapshot, slot: int) -> tuple[ClassLevel, ...]:
    """Return the levels of one provider, sorted by class."""
    levels = []
    for class_id in snapshot.provider(slot).classes:
        name = snapshot.class_names.get(class_id)
        if name is not None:
            amounts = snapshot.columns[class_id].amounts(slot)
            levels.append(ClassLevel(name, amounts.total, amounts.reserved, int(amounts.capacity), int(amounts.used)))
    return tuple(sorted(levels, key=lambda level: level.resource_class))


def _percent(part: float, whole: float) -> float:
    """Return ``part`` in percent of ``whole``, clipped to 0 to 100."""
    if whole <= 0:
        return 100.0 if part > 0 else 0.0
    return round(min(max(100 * part / whole, 0.0), 100.0), 2)
