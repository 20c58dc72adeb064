"""Aggregates: opaque uuids under which providers are gathered.  They come into being by association and never go."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from placement.db import feed, names
from placement.db.tables import placement_aggregates, resource_provider_aggregates
from placement.db.transaction import Reading, Transaction
from placement.objects.provider import ResourceProvider


def of_provider(db: Reading, provider: ResourceProvider) -> list[str]:
    """The uuids of the provider's aggregates."""
    return list(db.execute(_OF_PROVIDER, {"provider": provider.id}).scalars())


def replace(db: Transaction, provider: ResourceProvider, uuids: Collection[str]) -> None:
    """Make the provider belong to exactly these aggregates; its row must be locked."""
    named = [names.Name(names.AGGREGATE, uuid) for uuid in uuids]
    # Nothing refers to an aggregate by foreign key, so its row is looked for in the transaction that names its id.
    wanted = set(names.ensure(db, named, names.find(db, named)).values())
    present = set(db.execute(_IDS_OF_PROVIDER, {"provider": provider.id}).scalars())
    if present - wanted:
        db.execute(_LEAVE, {"provider": provider.id, "ids": list(present - wanted)})
    if wanted - present:
        rows = [{"resource_provider_id": provider.id, "aggregate_id": row_id} for row_id in sorted(wanted - present)]
        db.execute(sa.insert(resource_provider_aggregates), rows)
    if present != wanted:
        db.changed(provider.id, feed.SHAPE)


_IN = resource_provider_aggregates.c
_IDS_OF_PROVIDER = sa.select(_IN.aggregate_id).where(_IN.resource_provider_id == sa.bindparam("provider"))
_OF_PROVIDER = (
    sa.select(placement_aggregates.c.uuid)
    .join(resource_provider_aggregates, _IN.aggregate_id == placement_aggregates.c.id)
    .where(_IN.resource_provider_id == sa.bindparam("provider"))
    .order_by(placement_aggregates.c.uuid)
)
_LEAVE = sa.delete(resource_provider_aggregates).where(
    _IN.resource_provider_id == sa.bindparam("provider"),
    _IN.aggregate_id.in_(sa.bindparam("ids", expanding=True)),
)
