"""The plain rows that an index is made from, whether they come from a database or from a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class ProviderRow(NamedTuple):
    id: int
    uuid: str
    name: str | None
    #: None is a fault, and read as 0.
    generation: int | None
    #: None for a root.
    parent_id: int | None
    #: None, in databases of old, for a root.
    root_id: int | None


class InventoryRow(NamedTuple):
    provider_id: int
    class_id: int
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float


class UsageRow(NamedTuple):
    provider_id: int
    class_id: int
    used: int


class TraitRow(NamedTuple):
    provider_id: int
    trait: str


class AggregateRow(NamedTuple):
    provider_id: int
    aggregate: str


#: Rows in the order of InventoryRow or UsageRow.
Numbers = Sequence[tuple[Any, ...]] | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows about some providers, or about all: any tuples of these forms, or arrays where all is numbers."""

    providers: Sequence[tuple[int, str, str | None, int | None, int | None, int | None]]
    inventories: Numbers = ()
    usages: Numbers = ()
    traits: Sequence[tuple[int, str]] = ()
    aggregates: Sequence[tuple[int, str]] = ()
    #: The id of every trait that is named.
    trait_ids: Mapping[str, int] = field(default_factory=dict)
