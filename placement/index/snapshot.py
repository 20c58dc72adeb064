"""Snapshots of all providers in one committed state of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from placement.index.column import Amounts, Column, Totals, capacity_and_ratio, clamp
from placement.index.forest import Forest
from placement.index.patched import PatchedArray
from placement.index.providers import Provider, Providers
from placement.index.slot_sets import SlotSets
from placement.index.slots import EMPTY, Slots, SlotSet

Key = TypeVar("Key", int, str)

#: The trait of a sharing provider: its inventory serves every tree with a member in one of its aggregates.
#: (docs: api-sharing)
SHARES = "MISC_SHARES_VIA_AGGREGATE"


class _Lookup(Mapping[Key, int]):
    """The slots of providers by one of their values."""

    __slots__ = ("_find", "_keys", "_slots")

    def __init__(
        self, find: Callable[[Key], int | None], slots: Callable[[], Slots], keys: Callable[[Slots], Iterable[Any]]
    ) -> None:
        """Store functions: the slot of a key, all slots, and the keys of slots (None without a key)."""
        self._find: Callable[[Any], int | None] = find
        self._slots, self._keys = slots, keys

    def __getitem__(self, key: Key) -> int:
        slot = self._find(key)
        if slot is None:
            raise KeyError(key)
        return slot

    def get(self, key: Key, default: Any = None) -> Any:
        slot = self._find(key)
        return default if slot is None else slot

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def __iter__(self) -> Iterator[Key]:
        return (key for key in self._keys(self._slots()) if key is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Snapshot:
    """An immutable snapshot; ``build`` and ``edit`` create it."""

    __slots__ = (
        "aggregates",
        "class_ids",
        "class_names",
        "columns",
        "forest",
        "generations",
        "providers",
        "trait_ids",
        "traits",
    )

    providers: Providers
    generations: PatchedArray
    forest: Forest
    columns: Mapping[int, Column]
    traits: SlotSets
    aggregates: SlotSets
    class_ids: Mapping[str, int]
    class_names: Mapping[int, str]
    #: Ids by name, of all traits of providers and possibly of other traits.
    trait_ids: Mapping[str, int]

    @property
    def size(self) -> int:
        """The number of slots: the length of every mask."""
        return self.forest.size

    def __len__(self) -> int:
        """Return the number of providers."""
        return self.forest.everything.count

    @property
    def by_id(self) -> Mapping[int, int]:
        """The slots of the providers by id."""
        providers = self.providers
        return _Lookup(providers.slot_of_id, providers.slots, lambda slots: providers.ids(slots).tolist())

    @property
    def by_uuid(self) -> Mapping[str, int]:
        """The slots of the providers by uuid."""
        return _Lookup(self.providers.slot_of_uuid, self.providers.slots, self.providers.uuids)

    @property
    def by_name(self) -> Mapping[str, int]:
        """The slots of the providers with a name, by name."""
        return _Lookup(self.providers.slot_of_name, self.providers.slots, self.providers.names)

    @property
    def changes(self) -> int:
        """The number of changed rows, which are stored beside the arrays."""
        columns = sum(column.changes for column in self.columns.values())
        return columns + self.providers.changes + self.generations.changes

    def provider(self, slot: int) -> Provider:
        """Return the provider in a slot that is not free."""
        provider = self.providers.get(slot)
        assert provider is not None, slot
        return provider

    def with_trait(self, trait: str) -> SlotSet:
        """Return the providers with the trait."""
        return self.traits.get(trait, EMPTY)

    def in_aggregate(self, aggregate: str) -> SlotSet:
        """Return the providers in the aggregate."""
        return self.aggregates.get(aggregate, EMPTY)

    def column(self, resource_class: str) -> Column | None:
        """Return the inventories in a class, or None."""
        class_id = self.class_ids.get(resource_class)
        return None if class_id is None else self.columns.get(class_id)

    def totals(self) -> dict[str, Totals]:
        """Return the sums over each resource class, by name; 0 for a class without inventories."""
        columns = {name: self.columns.get(class_id) for name, class_id in self.class_ids.items()}
        return {name: Totals() if column is None else column.totals() for name, column in columns.items()}

    def ancestry(self, slot: int) -> tuple[int, ...]:
        """Return the slots of the provider, its parent, and so on up to the root."""
        path = [slot]
        while (parent := self.provider(path[-1]).parent) >= 0:
            path.append(parent)
        return tuple(path)


def amounts_of(row: tuple[int, int, int, int, int, int, int, float], used: int) -> Amounts:
    """Return the amounts of an inventory, from its row and its usage."""
    _, _, total, reserved, min_unit, max_unit, step_size, stored = row
    capacity, ratio = capacity_and_ratio(total, reserved, stored)
    return Amounts(
        float(capacity),
        float(used),
        clamp(min_unit),
        clamp(max_unit),
        clamp(step_size) or 1,
        clamp(total),
        clamp(reserved),
        float(ratio),
    )
