"""The rows that an index is built from; they come from a database, or from a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class ProviderRow(NamedTuple):
    """A provider, as the database has it."""

    id: int
    uuid: str
    name: str | None
    #: None is inconsistent, and read as 0.
    generation: int | None
    #: None for a root.
    parent_id: int | None
    #: None for a root of an old database.
    root_id: int | None


class InventoryRow(NamedTuple):
    """The inventory of a provider in one resource class."""

    provider_id: int
    class_id: int
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float


class UsageRow(NamedTuple):
    """The sum of the allocations of one resource class on a provider."""

    provider_id: int
    class_id: int
    used: int


class TraitRow(NamedTuple):
    """A trait of a provider, by name."""

    provider_id: int
    trait: str


class AggregateRow(NamedTuple):
    """An aggregate of a provider, by uuid."""

    provider_id: int
    aggregate: str


#: Rows in the order of InventoryRow or UsageRow.
Numbers = Sequence[tuple[Any, ...]] | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of some providers, or of all: tuples like those above, or arrays where every field is a number."""

    providers: Sequence[tuple[int, str, str | None, int | None, int | None, int | None]]
    inventories: Numbers = ()
    usages: Numbers = ()
    traits: Sequence[tuple[int, str]] = ()
    aggregates: Sequence[tuple[int, str]] = ()
    #: The id of every trait that is named.
    trait_ids: Mapping[str, int] = field(default_factory=dict)
