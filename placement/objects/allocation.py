"""Allocations as they are read: those of one consumer, and those on one provider.  A claim set changes them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Self

import sqlalchemy as sa

from placement.db.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    users,
)
from placement.db.writes.transaction import Reading
from placement.objects.provider import ResourceProvider
from placement.objects.usage import UNKNOWN_TYPE


@dataclass(slots=True)
class ConsumerAllocations:
    """All that one consumer holds, with everything that its record shows."""

    project: str
    user: str
    consumer_generation: int
    consumer_type: str
    #: The time at which the newest of the allocations was written.
    modified: datetime.datetime | None = None
    #: Amounts by provider uuid and class.
    resources: dict[str, dict[str, int]] = field(default_factory=dict)
    #: By provider uuid.
    provider_generations: dict[str, int] = field(default_factory=dict)

    @classmethod
    def find(cls, db: Reading, consumer: str) -> Self | None:
        """What the consumer with exactly this uuid, case included, holds; None if that is nothing."""
        held = None
        for row in db.execute(_OF_CONSUMER, {"consumer": consumer}):
            if row.consumer != consumer:
                continue  # some collations find it in another case, too
            if held is None:
                held = cls(row.project, row.user, row.generation, row.consumer_type or UNKNOWN_TYPE)
            held.resources.setdefault(row.provider, {})[row.resource_class] = row.used
            held.provider_generations[row.provider] = row.provider_generation
            held.modified = _newer(held.modified, row.created_at)
        return held


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

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> Self:
        """All that is held on the provider."""
        found = cls()
        for row in db.execute(_OF_PROVIDER, {"provider": provider.id}):
            share = found.shares.setdefault(row.consumer, ConsumerShare(row.generation))
            share.resources[row.resource_class] = row.used
            found.modified = _newer(found.modified, row.created_at)
        return found


def _newer(one: datetime.datetime | None, other: datetime.datetime | None) -> datetime.datetime | None:
    return max((date for date in (one, other) if date is not None), default=None)


_A, _C, _P = allocations.c, consumers.c, resource_providers.c
_OF_CONSUMER = (
    sa.select(
        _A.consumer_id.label("consumer"),
        _P.uuid.label("provider"),
        sa.func.coalesce(_P.generation, 0).label("provider_generation"),
        resource_classes.c.name.label("resource_class"),
        _A.used,
        _A.created_at,
        _C.generation,
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumer_types.c.name.label("consumer_type"),
    )
    .select_from(allocations)
    .join(consumers, _C.uuid == _A.consumer_id)
    .join(resource_providers, _P.id == _A.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == _A.resource_class_id)
    .join(projects, projects.c.id == _C.project_id)
    .join(users, users.c.id == _C.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == _C.consumer_type_id)
    .where(_A.consumer_id == sa.bindparam("consumer"))
    .order_by(_A.id)
)
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
