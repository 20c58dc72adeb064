"""The whole cloud: totals by class, the usage of hosts, and the providers that need attention.

A *host* is a tree; its amount of a class is the sum over its providers.
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

#: Trait of a compute host on which no new servers are scheduled.
DISABLED = "COMPUTE_STATUS_DISABLED"


class ProviderName(NamedTuple):
    """The uuid and display name of a provider."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Attention:
    """The number of providers with a problem, and some examples, each with a description."""

    count: int
    examples: list[tuple[ProviderName, str]]


@dataclass(frozen=True, slots=True)
class HostLevels:
    """The hosts with inventory of a class, as parallel lists: by group and name, or the fullest first."""

    resource_class: str
    hosts: list[ProviderName]
    capacity: npt.NDArray[np.int64]
    used: npt.NDArray[np.int64]
    is_disabled: list[bool]
    #: Whether a provider of the host is over-committed in any class.
    is_over: list[bool]
    #: Name and number of hosts of each group.
    groups: list[tuple[str, int]]

    def fullest(self, count: int) -> list[tuple[ProviderName, ClassLevel, bool]]:
        """Return the hosts with the highest used share, highest first, each with whether it is disabled."""
        return self._levels_at(heapq.nlargest(count, range(len(self.hosts)), key=self._used_share))

    def emptiest(self, count: int) -> list[tuple[ProviderName, ClassLevel, bool]]:
        """Return the hosts with the lowest used share, lowest first; disabled hosts come last."""
        return self._levels_at(
            heapq.nsmallest(
                count,
                range(len(self.hosts)),
                key=lambda position: (self.is_disabled[position], self._used_share(position)),
            )
        )

    def histogram(self) -> list[int]:
        """Return the number of hosts in each tenth of usage from 0 to 100 %, and above 100 %."""
        capacity = np.maximum(self.capacity, 1)
        tenths = np.where(self.used > self.capacity, 10, np.minimum(self.used * 10 // capacity, 9))
        return np.bincount(tenths.clip(0, 10), minlength=11).tolist()  # type: ignore[no-any-return]

    def _used_share(self, position: int) -> float:
        return float(self.used[position] / max(self.capacity[position], 1))

    def _levels_at(self, positions: Iterable[int]) -> list[tuple[ProviderName, ClassLevel, bool]]:
        return [(self.hosts[position], self._level(position), self.is_disabled[position]) for position in positions]

    def _level(self, position: int) -> ClassLevel:
        capacity = int(self.capacity[position])
        return ClassLevel(self.resource_class, capacity, 0, capacity, int(self.used[position]))


def class_names(snapshot: Snapshot) -> list[str]:
    """Return the sorted names of the classes with inventory."""
    names = (snapshot.class_names.get(class_id) for class_id, column in snapshot.columns.items() if column)
    return sorted(name for name in names if name is not None and len(_inventories(snapshot, name).slots))


def totals(snapshot: Snapshot) -> list[ClassLevel]:
    """Return the sum over all providers for each class with inventory."""
    levels = []
    for name in class_names(snapshot):
        inventories = _inventories(snapshot, name)
        sums = (inventories.total, inventories.reserved, np.floor(inventories.capacity), inventories.used)
        levels.append(ClassLevel(name, *(int(amounts.sum(dtype=np.float64)) for amounts in sums)))
    return levels


def of_tree(snapshot: Snapshot, root: int) -> list[ClassLevel]:
    """Return the sum over the providers of a tree for each class with inventory, by name of the class."""
    sums: dict[str, list[int]] = {}
    for slot in snapshot.forest.tree(root):
        for level in levels_of(snapshot, slot):
            amounts = (level.total, level.reserved, level.capacity, level.used)
            sums_of_class = sums.setdefault(level.resource_class, [0] * len(amounts))
            sums[level.resource_class] = [left + right for left, right in zip(sums_of_class, amounts, strict=True)]
    return [ClassLevel(name, *amounts) for name, amounts in sorted(sums.items())]


#: Groupings besides the prefixes of traits: by aggregate, and a single group with the fullest host first.
AGGREGATE, FULLEST = "aggregate", "fullest"
#: The group of hosts that belong to no other group.
_NO_GROUP = "none"


def groupings(snapshot: Snapshot) -> list[str]:
    """Return the possible groupings of hosts: by aggregate, and by each prefix that several custom traits share."""
    prefixes: defaultdict[str, set[str]] = defaultdict(set)
    has_aggregates = False
    for root in snapshot.forest.all_roots.slots().tolist():
        provider = snapshot.provider(root)
        has_aggregates = has_aggregates or bool(provider.aggregates)
        for trait in provider.traits:
            if trait.startswith("CUSTOM_"):
                prefixes[trait[: trait.rindex("_") + 1]].add(trait)
    traits = sorted(prefix for prefix, names in prefixes.items() if len(names) > 1)
    return [*([AGGREGATE] if has_aggregates else []), *traits]


def _group_of(snapshot: Snapshot, root: int, grouping: str) -> str:
    """Return the group of a host, or the first of several by name."""
    provider = snapshot.provider(root)
    if grouping in ("", FULLEST):
        return ""
    if grouping == AGGREGATE:
        return min(provider.aggregates, default=_NO_GROUP)
    return min(
        (name.removeprefix(grouping) for name in provider.traits if name.startswith(grouping)), default=_NO_GROUP
    )


def host_levels(snapshot: Snapshot, resource_class: str, grouping: str = "") -> HostLevels:
    """Return the usage of a class on each host; no hosts if no provider has inventory of it.

    Args:
        grouping: One of ``groupings``; FULLEST or empty for no groups.
    """
    inventories = _inventories(snapshot, resource_class)
    roots = snapshot.forest.roots(inventories.slots)
    capacity = np.bincount(roots, np.floor(inventories.capacity), snapshot.size)
    used = np.bincount(roots, inventories.used, snapshot.size)
    # All ranks are equal unless the fullest host comes first.
    rank = -used / np.maximum(capacity, 1) if grouping == FULLEST else np.zeros(snapshot.size)
    ordered = sorted(
        (_group_of(snapshot, slot, grouping), float(rank[slot]), provider_name(snapshot, slot).name, slot)
        for slot in np.unique(roots).tolist()
    )
    hosts = [(group, slot) for group, *_, slot in ordered]
    order = np.array([slot for *_, slot in hosts], dtype=np.intp)
    over_committed_roots = {snapshot.provider(slot).root for slot in _over_committed(snapshot)}
    return HostLevels(
        resource_class,
        [provider_name(snapshot, slot) for *_, slot in hosts],
        _integers(capacity[order]),
        _integers(used[order]),
        [DISABLED in snapshot.provider(slot).traits for *_, slot in hosts],
        [slot in over_committed_roots for *_, slot in hosts],
        list(Counter(group for group, *_ in hosts).items()),
    )


def over_committed(snapshot: Snapshot, examples: int) -> Attention:
    """Return the providers over-committed in any class."""
    return _attention(snapshot, _over_committed(snapshot), examples)


def _over_committed(snapshot: Snapshot) -> dict[int, str]:
    """Return the usage above the capacity of each over-committed provider, as text, by slot."""
    excesses: dict[int, str] = {}
    for name in class_names(snapshot):
        column = snapshot.column(name) or Column.empty()
        for slot in column.over_committed().tolist():
            amounts = column.amounts(slot)
            excess = amount_of(int(amounts.used) - int(amounts.capacity), name)
            excesses[slot] = f"{excesses[slot]}, {excess}" if slot in excesses else excess
    return excesses


def disabled_in_use(snapshot: Snapshot, examples: int) -> Attention:
    """Return the disabled providers with allocations in their trees."""
    disabled = snapshot.with_trait(DISABLED).slots().tolist()
    used = {
        slot for column in snapshot.columns.values() for slot, amount in zip(*column.usage(), strict=True) if amount
    }
    in_use = {
        slot: "disabled" for slot in disabled if used.intersection(snapshot.forest.tree(snapshot.provider(slot).root))
    }
    return _attention(snapshot, in_use, examples)


def by_pressure(levels: Iterable[ClassLevel]) -> list[ClassLevel]:
    """Return the levels sorted by used share, highest first."""
    return sorted(levels, key=lambda level: (-level.used / max(level.capacity, 1), level.resource_class))


def provider_name(snapshot: Snapshot, slot: int) -> ProviderName:
    """Return the uuid and display name of a provider: its name, or else its uuid."""
    provider = snapshot.provider(slot)
    return ProviderName(provider.uuid, provider.name or provider.uuid)


def _attention(snapshot: Snapshot, reasons: Mapping[int, str], examples: int) -> Attention:
    providers = [(provider_name(snapshot, slot), reason) for slot, reason in reasons.items()]
    return Attention(len(providers), heapq.nsmallest(examples, providers, key=lambda pair: pair[0].name))


def _inventories(snapshot: Snapshot, resource_class: str) -> Inventories:
    return (snapshot.column(resource_class) or Column.empty()).inventories()


def _integers(amounts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return amounts as integers, clipped: sums with extreme allocation ratios can exceed 64 bits."""
    integers: npt.NDArray[np.int64] = np.clip(amounts, -(2.0**62), 2.0**62).astype(np.int64)
    return integers
