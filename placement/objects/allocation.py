"""The allocations on one provider; ``claims.holding`` reads the allocations of a consumer."""

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
    """The allocations of one consumer on one provider."""

    consumer_generation: int
    #: Amounts by class.
    resources: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ProviderAllocations:
    """The allocations of all consumers on one provider."""

    #: The allocations of each consumer, by its uuid.
    shares: dict[str, ConsumerShare] = field(default_factory=dict)
    #: Creation time of the newest allocation.
    modified: datetime.datetime | None = None

    def __bool__(self) -> bool:
        """Whether the provider has allocations."""
        return bool(self.shares)

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> Self:
        """Return the allocations on the provider."""
        result = cls()
        for row in db.execute(_OF_PROVIDER, {"provider": provider.id}):
            share = result.shares.setdefault(row.consumer, ConsumerShare(row.generation))
            share.resources[row.resource_class] = row.used
            if row.created_at is not None and (result.modified is None or result.modified < row.created_at):
                result.modified = row.created_at
        return result


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
