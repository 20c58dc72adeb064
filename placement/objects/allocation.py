"""Allocations on one provider, as they are read; those of a consumer are its ``Holding``."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Self

import sqlalchemy as sa

from placement.db.schema.tables import allocations, consumers, resource_classes
from placement.db.writes.transaction import Reading
from placement.objects.provider import ResourceProvider


@dataclass(slots=True)
class ConsumerShare:
    """What one consumer holds on one provider."""

    consumer_generation: int
    #: Amounts by class.
    resources: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ProviderAllocations:
    """What consumers hold on one provider."""

    #: By consumer uuid.
    shares: dict[str, ConsumerShare] = field(default_factory=dict)
    #: The time at which the newest of the allocations was written.
    modified: datetime.datetime | None = None

    def __bool__(self) -> bool:
        """Return whether anything is held."""
        return bool(self.shares)

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> Self:
        """All that is held on the provider."""
        found = cls()
        for row in db.execute(_OF_PROVIDER, {"provider": provider.id}):
            share = found.shares.setdefault(row.consumer, ConsumerShare(row.generation))
            share.resources[row.resource_class] = row.used
            if row.created_at is not None and (found.modified is None or found.modified < row.created_at):
                found.modified = row.created_at
        return found


_A, _C = allocations.c, consumers.c
_OF_PROVIDER = (
    sa.select(
        _A.consumer_id.label("consumer"),
        resource_classes.c.name.label("resource_class"),
        _A.used,
        _A.created_at,
        _C.generation,
    )
    .select_from(allocations)
    .join(consumers, _C.uuid == _A.consumer_id)
    .join(resource_classes, resource_classes.c.id == _A.resource_class_id)
    .where(_A.resource_provider_id == sa.bindparam("provider"))
    .order_by(_A.id)
)
