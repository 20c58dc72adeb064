"""The cloud as a whole: sums by class, how full hosts are, and which providers need attention.

A *host* is a tree: its amounts of a class are those of all its providers together.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from placement.extensions.console.views.level import ClassLevel
from placement.index.column import Column, Inventories
from placement.index.snapshot import Snapshot

#: The trait of a compute host that gets no new servers.
DISABLED = "COMPUTE_STATUS_DISABLED"


class Named(NamedTuple):
    """A provider where it is only named."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Attention:
    """Some providers that need attention, and how many there are."""

    count: int
    examples: list[Named]


@dataclass(frozen=True, slots=True)
class HostLevels:
    """All hosts that have a class, by name.  The arrays are in the same order."""

    resource_class: str
    hosts: list[Named]
    capacity: npt.NDArray[np.int64]
    used: npt.NDArray[np.int64]

    def fullest(self, count: int) -> list[tuple[Named, ClassLevel]]:
        """Return the hosts of which the greatest part is used, the fullest first."""
        return self._picked(heapq.nlargest(count, range(len(self.hosts)), key=self._part))

    def emptiest(self, count: int) -> list[tuple[Named, ClassLevel]]:
        """Return the hosts of which the least part is used, the emptiest first."""
        return self._picked(heapq.nsmallest(count, range(len(self.hosts)), key=self._part))

    def histogram(self) -> list[int]:
        """Return how many hosts are used up to 10 %, 20 % ... 100 %, and how many above."""
        capacity = np.maximum(self.capacity, 1)
        tenths = np.where(self.used > self.capacity, 10, np.minimum(self.used * 10 // capacity, 9))
        return np.bincount(tenths.clip(0, 10), minlength=11).tolist()  # type: ignore[no-any-return]

    def _part(self, place: int) -> float:
        return float(self.used[place] / max(self.capacity[place], 1))

    def _picked(self, places: Iterable[int]) -> list[tuple[Named, ClassLevel]]:
        return [(self.hosts[place], self._level(place)) for place in places]

    def _level(self, place: int) -> ClassLevel:
        capacity = int(self.capacity[place])
        return ClassLevel(self.resource_class, capacity, 0, capacity, int(self.used[place]))


def class_names(snapshot: Snapshot) -> list[str]:
    """Return the names of the classes that some provider has, sorted."""
    named = (snapshot.class_names.get(class_id) for class_id, column in snapshot.columns.items() if len(column))
    return sorted(name for name in named if name is not None and len(_inventories(snapshot, name).slots))


def totals(snapshot: Snapshot) -> list[ClassLevel]:
    """Return the sum over all providers, for each class that some provider has."""
    found = []
    for name in class_names(snapshot):
        inventories = _inventories(snapshot, name)
        sums = (inventories.total, inventories.reserved, np.floor(inventories.capacity), inventories.used)
        found.append(ClassLevel(name, *(int(amounts.sum(dtype=np.float64)) for amounts in sums)))
    return found


def host_levels(snapshot: Snapshot, resource_class: str) -> HostLevels:
    """Return how full the hosts are in a class; no hosts if nothing has it."""
    inventories = _inventories(snapshot, resource_class)
    roots = snapshot.forest.roots(inventories.slots)
    capacity = np.bincount(roots, np.floor(inventories.capacity), snapshot.size)
    used = np.bincount(roots, inventories.used, snapshot.size)
    hosts = sorted((named(snapshot, slot).name, slot) for slot in np.unique(roots).tolist())
    order = np.array([slot for _, slot in hosts], dtype=np.intp)
    return HostLevels(
        resource_class,
        [named(snapshot, slot) for _, slot in hosts],
        _integers(capacity[order]),
        _integers(used[order]),
    )


def over_committed(snapshot: Snapshot, examples: int) -> Attention:
    """Return the providers of which more is used than the capacity, in any class."""
    over: set[int] = set()
    for name in class_names(snapshot):
        over.update((snapshot.column(name) or Column.empty()).over_committed().tolist())
    return _attention(snapshot, over, examples)


def disabled(snapshot: Snapshot, examples: int) -> Attention:
    """Return the providers with the trait of a disabled host."""
    return _attention(snapshot, snapshot.with_trait(DISABLED).slots().tolist(), examples)


def named(snapshot: Snapshot, slot: int) -> Named:
    """Return the name of a provider; the uuid, if it has none."""
    provider = snapshot.provider(slot)
    return Named(provider.uuid, provider.name or provider.uuid)


def _attention(snapshot: Snapshot, slots: Iterable[int], examples: int) -> Attention:
    found = [named(snapshot, slot) for slot in slots]
    return Attention(len(found), heapq.nsmallest(examples, found, key=lambda each: each.name))


def _inventories(snapshot: Snapshot, resource_class: str) -> Inventories:
    return (snapshot.column(resource_class) or Column.empty()).inventories()


def _integers(amounts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return amounts as integers; sums of absurd ratios may exceed 64 bits."""
    integers: npt.NDArray[np.int64] = np.clip(amounts, -(2.0**62), 2.0**62).astype(np.int64)
    return integers
