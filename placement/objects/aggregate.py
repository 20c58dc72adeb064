"""Aggregates: groups of providers, identified by a uuid alone.

A ``LockedProvider`` changes the memberships of a provider.  The row of an aggregate is inserted with its first member,
and a sweep deletes unused rows.
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
    """The record of an aggregate."""

    uuid: str

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> list[Self]:
        """Return the aggregates of the provider, ordered by uuid."""
        return [cls(*row) for row in db.execute(_OF_PROVIDER, {"provider": provider.id})]


_IN = resource_provider_aggregates.c
_OF_PROVIDER = (
    sa.select(placement_aggregates.c.uuid)
    .join(resource_provider_aggregates, _IN.aggregate_id == placement_aggregates.c.id)
    .where(_IN.resource_provider_id == sa.bindparam("provider"))
    .order_by(placement_aggregates.c.uuid)
)
