"""Aggregates: groups of providers, each known by a uuid alone.  A locked provider changes of which it is a member.

The row of an aggregate is created when a provider becomes its first member; a sweep removes unused rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from placement.db.schema.tables import placement_aggregates, resource_provider_aggregates
from placement.db.writes.transaction import Reading
from placement.objects.provider import ResourceProvider


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate."""

    uuid: str

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> list[Self]:
        """The aggregates of the provider, in the order of their uuids."""
        return [cls(*row) for row in db.execute(_OF_PROVIDER, {"provider": provider.id})]


_IN = resource_provider_aggregates.c
_OF_PROVIDER = (
    sa.select(placement_aggregates.c.uuid)
    .join(resource_provider_aggregates, _IN.aggregate_id == placement_aggregates.c.id)
    .where(_IN.resource_provider_id == sa.bindparam("provider"))
    .order_by(placement_aggregates.c.uuid)
)
