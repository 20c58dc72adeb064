"""All providers as of one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index.column import Column, Inventory, held, whole
from placement.index.forest import Forest
from placement.index.slots import EMPTY, SlotSet

#: Its inventory can serve every tree that has a member in one of its aggregates.
SHARES = "MISC_SHARES_VIA_AGGREGATE"


class Provider(NamedTuple):
    """What is said of a provider in one word or a few; its amounts are in the columns."""

    id: int
    uuid: str
    name: str | None
    #: Slots; -1 for the parent of a root.
    parent: int
    root: int
    #: Ids of the resource classes it has, ascending.
    classes: tuple[int, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]


class Snapshot:
    """Immutable, but for what it remembers; made by ``build`` and ``edit``."""

    __slots__ = (
        "aggregates",
        "by_id",
        "by_uuid",
        "class_ids",
        "class_names",
        "columns",
        "forest",
        "free",
        "generations",
        "providers",
        "trait_ids",
        "traits",
    )

    #: By slot; None where there is no provider.
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
    #: Of all traits that some provider has, and perhaps of others.
    trait_ids: Mapping[str, int]
    #: Slots below the length of ``providers`` that no provider has.
    free: tuple[int, ...]

    @property
    def size(self) -> int:
        """The length of every mask."""
        return self.forest.size

    def __len__(self) -> int:
        """How many providers there are."""
        return len(self.by_id)

    def provider(self, slot: int) -> Provider:
        """The provider in a slot that has one."""
        provider = self.providers[slot]
        assert provider is not None, slot
        return provider

    def with_trait(self, trait: str) -> SlotSet:
        """Return the providers that have the trait."""
        return self.traits.get(trait, EMPTY)

    def in_aggregate(self, aggregate: str) -> SlotSet:
        """Return the providers that are in the aggregate."""
        return self.aggregates.get(aggregate, EMPTY)

    def column(self, resource_class: str) -> Column | None:
        """The inventories of a class; None if no provider has any."""
        class_id = self.class_ids.get(resource_class)
        return None if class_id is None else self.columns.get(class_id)

    def ancestry(self, slot: int) -> tuple[int, ...]:
        """The provider, its parent, and so on to the root."""
        line = [slot]
        while (parent := self.provider(line[-1]).parent) >= 0:
            line.append(parent)
        return tuple(line)


def inventory_of(row: tuple[int, int, int, int, int, int, int, float], used: int) -> Inventory:
    """The inventory that a row of the database stands for."""
    _, _, total, reserved, min_unit, max_unit, step_size, allocation_ratio = row
    return Inventory(
        float(held(total, reserved, allocation_ratio)),
        float(used),
        whole(min_unit),
        whole(max_unit),
        whole(step_size) or 1,
    )
