"""Snapshots of all providers in one committed state of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index.column import Amounts, Column, Totals, capacity_and_ratio, clamp
from placement.index.forest import Forest
from placement.index.slots import EMPTY, Slots, SlotSet

#: The trait of a sharing provider: its inventory serves every tree with a member in one of its aggregates.
#: (docs: api-sharing)
SHARES = "MISC_SHARES_VIA_AGGREGATE"


class Provider(NamedTuple):
    """A provider without its generation and amounts, which the snapshot holds in arrays."""

    id: int
    uuid: str
    name: str | None
    #: The slot of the parent (-1 for a root) and of the root.
    parent: int
    root: int
    #: The ids of the resource classes of its inventories, ascending.
    classes: tuple[int, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]


class Snapshot:
    """An immutable snapshot; ``build`` and ``edit`` create it."""

    __slots__ = (
        "_by_name",
        "_parents",
        "aggregates",
        "by_id",
        "by_uuid",
        "class_ids",
        "class_names",
        "columns",
        "forest",
        "free_slots",
        "generations",
        "providers",
        "trait_ids",
        "traits",
    )

    #: The providers, by slot; None in a slot without a provider.
    providers: Sequence[Provider | None]
    generations: npt.NDArray[np.int64]
    forest: Forest
    columns: Mapping[int, Column]
    traits: Mapping[str, SlotSet]
    aggregates: Mapping[str, SlotSet]
    by_id: Mapping[int, int]
    by_uuid: Mapping[str, int]
    class_ids: Mapping[str, int]
    class_names: Mapping[int, str]
    #: Ids by name, of all traits of providers and possibly of other traits.
    trait_ids: Mapping[str, int]
    #: Slots without a provider, below the length of ``providers``.
    free_slots: tuple[int, ...]
    #: Values computed on first use; snapshots with the same providers share them.
    _by_name: Mapping[str, int] | None
    _parents: Slots | None

    def __init__(self) -> None:
        """Create an empty object, which ``build`` fills."""
        self.forget_providers()

    def forget_providers(self) -> None:
        """Drop the names and parents computed from the providers, which have been replaced."""
        self._by_name = self._parents = None

    @property
    def size(self) -> int:
        """The number of slots: the length of every mask."""
        return self.forest.size

    def __len__(self) -> int:
        """Return the number of providers."""
        return len(self.by_id)

    @property
    def by_name(self) -> Mapping[str, int]:
        """The slots of the providers with a name, by name."""
        by_name = self._by_name
        if by_name is None:
            named = ((provider.name, slot) for slot, provider in enumerate(self.providers) if provider is not None)
            by_name = self._by_name = {name: slot for name, slot in named if name is not None}
        return by_name

    @property
    def parents(self) -> Slots:
        """The parent of each slot; -1 for a root, and for a slot without a provider."""
        if self._parents is None:
            parents = np.full(self.size, -1, np.intp)
            parents[: len(self.providers)] = [
                -1 if provider is None else provider.parent for provider in self.providers
            ]
            self._parents = parents
        return self._parents

    def provider(self, slot: int) -> Provider:
        """Return the provider in a slot that is not free."""
        provider = self.providers[slot]
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
