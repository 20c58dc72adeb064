"""All providers as of one committed state of the database."""

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
    """A provider, except for its generation and its amounts, which are in arrays."""

    id: int
    uuid: str
    name: str | None
    #: The slots of the parent (-1 for a root) and of the root.
    parent: int
    root: int
    #: The ids of the resource classes of its inventories, ascending.
    classes: tuple[int, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]


class Snapshot:
    """Immutable; made by ``build`` and ``edit``."""

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
    #: The id of every trait that some provider has, and perhaps of others.
    trait_ids: Mapping[str, int]
    #: Slots below the length of ``providers`` that no provider has.
    free: tuple[int, ...]
    #: Both are made when they are asked for first; snapshots with the same providers have them from each other.
    _by_name: Mapping[str, int] | None
    _parents: Slots | None

    def __init__(self) -> None:
        """Leave everything to ``build`` and ``edit``."""
        self.forget_providers()

    def forget_providers(self) -> None:
        """Names and parents are read from the providers when they are asked for next."""
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
        """The slots of the providers that have a name."""
        by_name = self._by_name
        if by_name is None:
            named = ((provider.name, slot) for slot, provider in enumerate(self.providers) if provider is not None)
            by_name = self._by_name = {name: slot for name, slot in named if name is not None}
        return by_name

    @property
    def parents(self) -> Slots:
        """The parent of each slot; -1 for a root, and where there is no provider."""
        if self._parents is None:
            parents = np.full(self.size, -1, np.intp)
            parents[: len(self.providers)] = [-1 if one is None else one.parent for one in self.providers]
            self._parents = parents
        return self._parents

    def provider(self, slot: int) -> Provider:
        """Return the provider in a slot that has one."""
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
        """Return the inventories of a class; None if no provider has any."""
        class_id = self.class_ids.get(resource_class)
        return None if class_id is None else self.columns.get(class_id)

    def totals(self) -> dict[str, Totals]:
        """Return the sums of each resource class by its name, zeros for a class that no provider has."""
        columns = {name: self.columns.get(class_id) for name, class_id in self.class_ids.items()}
        return {name: Totals() if column is None else column.totals() for name, column in columns.items()}

    def ancestry(self, slot: int) -> tuple[int, ...]:
        """Return the provider, its parent, and so on to the root."""
        path = [slot]
        while (parent := self.provider(path[-1]).parent) >= 0:
            path.append(parent)
        return tuple(path)


def amounts_of(row: tuple[int, int, int, int, int, int, int, float], used: int) -> Amounts:
    """Return the amounts of an inventory row of the database."""
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
