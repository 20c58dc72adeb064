"""Inventories, traits and aggregates of providers, read for many providers in a few statements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import sqlalchemy as sa

from placement.db import batches
from placement.db.schema.tables import (
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    traits,
)
from placement.db.writes.transaction import Reading
from placement.objects.inventory import SELECT, Inventory


@dataclass(frozen=True, slots=True)
class ProviderContents:
    """The inventories of one provider by class, the names of its traits, and the uuids of its aggregates."""

    inventories: dict[str, Inventory] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)

    @classmethod
    def of_ids(cls, db: Reading, ids: Iterable[int]) -> dict[int, Self]:
        """Return the contents of these providers, by id."""
        ordered = sorted(ids)
        contents = {provider_id: cls() for provider_id in ordered}
        for *columns, provider_id in batches.rows(db, _INVENTORIES, "ids", ordered):
            record = Inventory(*columns)
            contents[provider_id].inventories[record.resource_class] = record
        for name, provider_id in batches.rows(db, _TRAITS, "ids", ordered):
            contents[provider_id].traits.add(name)
        for uuid, provider_id in batches.rows(db, _AGGREGATES, "ids", ordered):
            contents[provider_id].aggregates.add(uuid)
        return contents


_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_INVENTORIES = SELECT.add_columns(inventories.c.resource_provider_id)
_INVENTORIES = _INVENTORIES.where(inventories.c.resource_provider_id.in_(_IDS)).order_by(inventories.c.id)
_PT, _PA = resource_provider_traits.c, resource_provider_aggregates.c
_TRAITS = sa.select(traits.c.name, _PT.resource_provider_id).join_from(
    resource_provider_traits, traits, traits.c.id == _PT.trait_id
)
_TRAITS = _TRAITS.where(_PT.resource_provider_id.in_(_IDS))
_AGGREGATES = sa.select(placement_aggregates.c.uuid, _PA.resource_provider_id).join_from(
    resource_provider_aggregates, placement_aggregates, placement_aggregates.c.id == _PA.aggregate_id
)
_AGGREGATES = _AGGREGATES.where(_PA.resource_provider_id.in_(_IDS))
