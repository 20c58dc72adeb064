"""The free capacity of inventories, as a transaction sees it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from placement.db import batches
from placement.db.schema.tables import inventories, resource_classes
from placement.db.writes.transaction import Reading
from placement.objects import capacity
from placement.objects.provider import ResourceProvider
from placement.objects.usage import USED


@dataclass(frozen=True, slots=True)
class FreeCapacity:
    """The capacity, usage and free capacity of one inventory, in units of its class."""

    #: The amount that all consumers together can hold, truncated to a whole number (docs: api-capacity).
    capacity: int
    #: The sum of all allocations.
    used: int

    @property
    def free(self) -> int:
        """The amount that fits in addition to the usage; 0 if the inventory is over-committed."""
        return max(self.capacity - self.used, 0)

    @classmethod
    def of_providers(cls, db: Reading, ids: Collection[int]) -> dict[str, dict[str, Self]]:
        """Return the free capacity of all inventories of these providers, by provider uuid and class, ordered by id."""
        uuids = {provider.id: provider.uuid for provider in ResourceProvider.of_ids(db, ids)}
        inventories_of: dict[str, dict[str, Self]] = {uuid: {} for uuid in uuids.values()}
        for row in batches.rows(db, _INVENTORIES, "providers", uuids):
            limit = int(capacity.capacity(row.total, row.reserved, row.allocation_ratio))
            inventories_of[uuids[row.provider_id]][row.resource_class] = cls(limit, int(row.used))
        return inventories_of


_I = inventories.c
_INVENTORIES = (
    sa.select(
        _I.resource_provider_id.label("provider_id"),
        resource_classes.c.name.label("resource_class"),
        *(_I.total, _I.reserved, _I.allocation_ratio),
        sa.func.coalesce(USED, 0).label("used"),
    )
    .join(resource_classes, resource_classes.c.id == _I.resource_class_id)
    .where(_I.resource_provider_id.in_(sa.bindparam("providers", expanding=True)))
    .order_by(_I.resource_provider_id, resource_classes.c.id)
)
