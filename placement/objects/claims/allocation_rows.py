"""Rows of allocations, as claims replace them; the consumers and providers are locked by the transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import sqlalchemy as sa

from placement.db import feed
from placement.db.engine.compiled import CompiledInsert, CompiledStatement
from placement.db.schema.tables import allocations, resource_classes, resource_providers, utcnow
from placement.db.upkeep.standard import FIRST_CUSTOM_ID
from placement.db.writes.transaction import Transaction
from placement.objects.claims.claim import Claim
from placement.objects.claims.claimed_inventory import ClaimedInventory
from placement.objects.consumer import Consumer


def insert(
    db: Transaction,
    claims: Iterable[Claim],
    provider_ids: Mapping[str, int],
    inventories: Mapping[tuple[str, str], ClaimedInventory],
) -> None:
    """Insert what is claimed.

    Args:
        provider_ids: Ids by uuid.
        inventories: By provider uuid and class name.
    """
    now = utcnow()
    rows = [
        {
            "created_at": now,
            "resource_provider_id": provider_ids[uuid],
            "resource_class_id": inventories[uuid, name].class_id,
            "consumer_id": claim.consumer,
            "used": amount,
        }
        for claim in claims
        for uuid, amounts in claim.resources.items()
        for name, amount in amounts.items()
    ]
    if rows:
        db.execute(_INSERT, rows)


def delete_all(db: Transaction, consumers: Collection[Consumer]) -> None:
    """Delete all that these consumers hold, and record it in the feed."""
    holders = [consumer for consumer in consumers if consumer.held_on]
    if holders:
        db.execute(_DELETE, {"consumers": [consumer.uuid for consumer in holders]})
    for consumer in holders:
        for provider_id in consumer.held_on:
            db.changed(provider_id, feed.USAGE)


def delete_on(db: Transaction, consumer: str, provider_ids: Iterable[int]) -> None:
    """Delete what the consumer holds on these providers, and record it in the feed."""
    for provider_id in provider_ids:
        db.execute(_DELETE_ON, {"consumer": consumer, "provider": provider_id})
        db.changed(provider_id, feed.USAGE)


def delete_lost(db: Transaction, consumers: Collection[str]) -> list[str]:
    """Delete what these consumers hold of providers and of custom classes that do not exist, and record it in the feed.

    What they hold of a standard class stays: its row can come back with the same id (placement/db/upkeep/standard.py).

    Returns:
        The consumers that held such.
    """
    lost = db.execute(_LOST, {"consumers": list(consumers)}).all()
    for consumer, provider_id, class_id in lost:
        db.execute(_DELETE_OF_CLASS, {"consumer": consumer, "provider": provider_id, "class_": class_id})
        db.changed(provider_id, feed.USAGE)
    # Some collations find a consumer in another case, too.
    return sorted({row.consumer_id for row in lost} & {*consumers})


_A = allocations.c
_INSERT = CompiledInsert(allocations, "created_at", "resource_provider_id", "resource_class_id", "consumer_id", "used")
_DELETE = CompiledStatement(sa.delete(allocations).where(_A.consumer_id.in_(sa.bindparam("consumers", expanding=True))))
_DELETE_ON = sa.delete(allocations).where(
    _A.consumer_id == sa.bindparam("consumer"), _A.resource_provider_id == sa.bindparam("provider")
)
_DELETE_OF_CLASS = _DELETE_ON.where(_A.resource_class_id == sa.bindparam("class_"))
_NO_PROVIDER = ~sa.exists().where(resource_providers.c.id == _A.resource_provider_id)
_NO_CLASS = ~sa.exists().where(resource_classes.c.id == _A.resource_class_id)
#: Whether an allocation is of a provider, or of a custom class, that does not exist.
IS_LOST = _NO_PROVIDER | ((_A.resource_class_id >= FIRST_CUSTOM_ID) & _NO_CLASS)
_LOST = (
    sa.select(_A.consumer_id, _A.resource_provider_id, _A.resource_class_id)
    .distinct()
    .where(_A.consumer_id.in_(sa.bindparam("consumers", expanding=True)), IS_LOST)
)
