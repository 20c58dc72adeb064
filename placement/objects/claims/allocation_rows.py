"""Writes of the rows of allocations, by a transaction that has locked their consumers and providers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import sqlalchemy as sa

from placement.db import feed
from placement.db.engine.compiled import CompiledInsert, CompiledStatement
from placement.db.schema.tables import allocations, utcnow
from placement.db.writes.transaction import Transaction
from placement.objects.claims.claim import Claim
from placement.objects.claims.claimed_inventory import ClaimedInventory
from placement.objects.claims.holding import Holding


def insert(
    db: Transaction,
    claims: Iterable[Claim],
    provider_ids: Mapping[str, int],
    inventories: Mapping[tuple[str, str], ClaimedInventory],
) -> None:
    """Insert the allocations of claims.

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


def delete_all(db: Transaction, consumers: Collection[Holding]) -> None:
    """Delete all allocations of these consumers, and record the change in the feed."""
    holders = [consumer for consumer in consumers if consumer.held_on]
    if holders:
        db.execute(_DELETE, {"consumers": [consumer.uuid for consumer in holders]})
    for consumer in holders:
        for provider_id in consumer.held_on:
            db.record_change(provider_id, feed.USAGE)


def delete_on(db: Transaction, consumer: str, provider_ids: Iterable[int]) -> None:
    """Delete the consumer's allocations on these providers, whose generations the caller has advanced."""
    for provider_id in provider_ids:
        db.execute(_DELETE_ON, {"consumer": consumer, "provider": provider_id})


_A = allocations.c
_INSERT = CompiledInsert(allocations, "created_at", "resource_provider_id", "resource_class_id", "consumer_id", "used")
_DELETE = CompiledStatement(sa.delete(allocations).where(_A.consumer_id.in_(sa.bindparam("consumers", expanding=True))))
_DELETE_ON = sa.delete(allocations).where(
    _A.consumer_id == sa.bindparam("consumer"), _A.resource_provider_id == sa.bindparam("provider")
)
