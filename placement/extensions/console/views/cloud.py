"""The cloud as a whole: sums by class, how full hosts are, and which providers need attention.

A *host* is a tree: its amounts of a class are those of all its providers together.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from placement.extensions.console.views.level import ClassLevel, levels_of
from placement.extensions.console.views.units import amount_of
from placement.index.column import Column, Inventories
from placement.index.snapshot import Snapshot

#: The trait of a compute host that gets no new servers.
DISABLED = "COMPUTE_STATUS_DISABLED"


class ProviderName(NamedTuple):
    """A provider where it is only named."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Attention:
    """Some providers that need attention, how many there are, and what is wrong with each."""

    count: int
    examples: list[tuple[ProviderName, str]]


@dataclass(frozen=True, slots=True)
class HostLevels:
    """All hosts that have a class, by group and name.  The arrays are in the same order."""

    resource_class: str
    hosts: list[ProviderName]
    capacity: npt.NDArray[np.int64]
    used: npt.NDArray[np.int64]
    is_disabled: list[bool]
    #: Whether more is used than there is, of any class, on some provider of the host.
    is_over: list[bool]
    #: The name of each group, and how many of the hosts it has.
    groups: list[tuple[str, int]]

    def fullest(self, count: int) -> list[tuple[ProviderName, ClassLevel, bool]]:
        """Return the fullest hosts by the share that is used, fullest first, and whether each is disabled."""
        return self._picked(heapq.nlargest(count, range(len(self.hosts)), key=self._part))

    def emptiest(self, count: int) -> list[tuple[ProviderName, ClassLevel, bool]]:
        """Return the emptiest hosts by the share that is used, emptiest first, then disabled ones."""
        return self._picked(
            heapq.nsmallest(count, range(len(self.hosts)), key=lambda at: (self.is_disabled[at], self._part(at)))
        )

    def histogram(self) -> list[int]:
        """Return how many hosts are used up to 10 %, 20 % ... 100 %, and how many above."""
        capacity = np.maximum(self.capacity, 1)
        tenths = np.where(self.used > self.capacity, 10, np.minimum(self.used * 10 // capacity, 9))
        return np.bincount(tenths.clip(0, 10), minlength=11).tolist()  # type: ignore[no-any-return]

    def _part(self, place: int) -> float:
        return float(self.used[place] / max(self.capacity[place], 1))

    def _picked(self, places: Iterable[int]) -> list[tuple[ProviderName, ClassLevel, bool]]:
        return [(self.hosts[place], self._level(place), self.is_disabled[place]) for place in places]

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


def of_tree(snapshot: Snapshot, root: int) -> list[ClassLevel]:
    """Return the sums over the providers of a tree, for each class that one of them has, by name."""
    sums: dict[str, list[int]] = {}
    for slot in snapshot.forest.tree(root):
        for level in levels_of(snapshot, slot):
            amounts = (level.total, level.reserved, level.capacity, level.used)
            known = sums.setdefault(level.resource_class, [0] * len(amounts))
            sums[level.resource_class] = [one + other for one, other in zip(known, amounts, strict=True)]
    return [ClassLevel(name, *amounts) for name, amounts in sorted(sums.items())]


#: The names by which hosts are grouped by their aggregates, or stand in the order of how full they are, and not by a
#: trait with this beginning.
AGGREGATE, FULLEST = "aggregate", "fullest"
#: Said of a host that is in no group.
_NO_GROUP = "none"


def groupings(snapshot: Snapshot) -> list[str]:
    """Return by what hosts can be grouped: aggregates, and beginnings that custom traits of several hosts share."""
    beginnings: defaultdict[str, set[str]] = defaultdict(set)
    has_aggregates = False
    for root in snapshot.forest.all_roots.slots().tolist():
        provider = snapshot.provider(root)
        has_aggregates = has_aggregates or bool(provider.aggregates)
        for trait in provider.traits:
            if trait.startswith("CUSTOM_"):
                beginnings[trait[: trait.rindex("_") + 1]].add(trait)
    traits = sorted(beginning for beginning, names in beginnings.items() if len(names) > 1)
    return [*([AGGREGATE] if has_aggregates else []), *traits]


def _group_of(snapshot: Snapshot, root: int, grouping: str) -> str:
    """Return the group of a host: of several, the first by name."""
    provider = snapshot.provider(root)
    if grouping in ("", FULLEST):
        return ""
    if grouping == AGGREGATE:
        return min(provider.aggregates, default=_NO_GROUP)
    return min(
        (name.removeprefix(grouping) for name in provider.traits if name.startswith(grouping)), default=_NO_GROUP
    )


def host_levels(snapshot: Snapshot, resource_class: str, grouping: str = "") -> HostLevels:
    """Return how full the hosts are in a class; no hosts if nothing has it.

    Args:
        grouping: One of ``groupings``; FULLEST or empty for no groups.
    """
    inventories = _inventories(snapshot, resource_class)
    roots = snapshot.forest.roots(inventories.slots)
    capacity = np.bincount(roots, np.floor(inventories.capacity), snapshot.size)
    used = np.bincount(roots, inventories.used, snapshot.size)
    # 0 for all, unless it is the order: the fullest first.
    place = -used / np.maximum(capacity, 1) if grouping == FULLEST else np.zeros(snapshot.size)
    ordered = sorted(
        (_group_of(snapshot, slot, grouping), float(place[slot]), named(snapshot, slot).name, slot)
        for slot in np.unique(roots).tolist()
    )
    hosts = [(group, slot) for group, *_, slot in ordered]
    order = np.array([slot for *_, slot in hosts], dtype=np.intp)
    over = {snapshot.provider(slot).root for slot in _over_committed(snapshot)}
    return HostLevels(
        resource_class,
        [named(snapshot, slot) for *_, slot in hosts],
        _integers(capacity[order]),
        _integers(used[order]),
        [DISABLED in snapshot.provider(slot).traits for *_, slot in hosts],
        [slot in over for *_, slot in hosts],
        list(Counter(group for group, *_ in hosts).items()),
    )


def over_committed(snapshot: Snapshot, examples: int) -> Attention:
    """Return the providers of which more is used than the capacity, in any class."""
    return _attention(snapshot, _over_committed(snapshot), examples)


def _over_committed(snapshot: Snapshot) -> dict[int, str]:
    """Return how much more is used of providers than the capacity, in words, by slot."""
    over: dict[int, str] = {}
    for name in class_names(snapshot):
        column = snapshot.column(name) or Column.empty()
        for slot in column.over_committed().tolist():
            amounts = column.amounts(slot)
            by = amount_of(int(amounts.used) - int(amounts.capacity), name)
            over[slot] = f"{over[slot]}, {by}" if slot in over else by
    return over


def disabled_in_use(snapshot: Snapshot, examples: int) -> Attention:
    """Return the providers with the trait of a disabled host in whose tree something is used."""
    found = snapshot.with_trait(DISABLED).slots().tolist()
    used = {
        slot for column in snapshot.columns.values() for slot, amount in zip(*column.usage(), strict=True) if amount
    }
    in_use = {
        slot: "disabled" for slot in found if used.intersection(snapshot.forest.tree(snapshot.provider(slot).root))
    }
    return _attention(snapshot, in_use, examples)


def by_pressure(levels: Iterable[ClassLevel]) -> list[ClassLevel]:
    """Return levels in the order of how full they are, the fullest first."""
    return sorted(levels, key=lambda level: (-level.used / max(level.capacity, 1), level.resource_class))


def named(snapshot: Snapshot, slot: int) -> ProviderName:
    """Return the name of a provider; the uuid, if it has none."""
    provider = snapshot.provider(slot)
    return ProviderName(provider.uuid, provider.name or provider.uuid)


def _attention(snapshot: Snapshot, reasons: Mapping[int, str], examples: int) -> Attention:
    found = [(named(snapshot, slot), reason) for slot, reason in reasons.items()]
    return Attention(len(found), heapq.nsmallest(examples, found, key=lambda each: each[0].name))


def _inventories(snapshot: Snapshot, resource_class: str) -> Inventories:
    return (snapshot.column(resource_class) or Column.empty()).inventories()


def _integers(amounts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return amounts as integers; sums of absurd ratios may exceed 64 bits."""
    integers: npt.NDArray[np.int64] = np.clip(amounts, -(2.0**62), 2.0**62).astype(np.int64)
    return integers
