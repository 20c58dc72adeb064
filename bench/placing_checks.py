"""Checks of a whole database after a measurement: capacities, and the allocations of consumers."""

from __future__ import annotations

import collections
from collections.abc import Mapping

import sqlalchemy as sa
from placing_requests import Allocations

from placement.db.engine.dialects import normalise
from placement.db.schema import tables


def failures(database_url: str, holdings: Mapping[str, Allocations], together: bool) -> list[str]:
    """Return the violations in the database, as sentences.

    Args:
        holdings: The allocations of consumers according to the responses.
        together: Whether all providers of a consumer must be below one NUMA node.
    """
    engine = sa.create_engine(normalise(database_url))
    with engine.connect() as db:
        sentences = [
            *_over_committed(db),
            *_differences(db, holdings),
            *(_numa_violations(db, holdings) if together else ()),
        ]
    engine.dispose()
    return sentences


def largest_free_share(database_url: str) -> float:
    """Return the largest free share of a host's capacity, for flat hosts of equal capacity."""
    engine = sa.create_engine(normalise(database_url))
    usage, inventories = tables.allocations, tables.inventories
    used = sa.func.coalesce(
        sa.select(sa.func.sum(usage.c.used))
        .where(
            usage.c.resource_provider_id == inventories.c.resource_provider_id,
            usage.c.resource_class_id == inventories.c.resource_class_id,
        )
        .scalar_subquery(),
        0,
    )
    capacity = (inventories.c.total - inventories.c.reserved) * inventories.c.allocation_ratio
    free = sa.select(sa.func.min((capacity - used) / capacity).label("share")).group_by(
        inventories.c.resource_provider_id
    )
    with engine.connect() as db:
        share = db.execute(sa.select(sa.func.max(free.subquery().c.share))).scalar()
    engine.dispose()
    return float(share or 0)


def _over_committed(db: sa.Connection) -> list[str]:
    usage, inventories = tables.allocations, tables.inventories
    provider, name = usage.c.resource_provider_id, usage.c.resource_class_id
    used = sa.select(provider, name, sa.func.sum(usage.c.used).label("used")).group_by(provider, name).subquery()
    condition = sa.and_(
        inventories.c.resource_provider_id == used.c.resource_provider_id,
        inventories.c.resource_class_id == used.c.resource_class_id,
    )
    rows = db.execute(
        sa.select(used, inventories.c.total, inventories.c.reserved, inventories.c.allocation_ratio).select_from(
            used.outerjoin(inventories, condition)
        )
    )
    return [
        f"provider {row.resource_provider_id}, class {row.resource_class_id}: {int(row.used)} of {row.total} used"
        for row in rows
        if row.total is None or row.used > (row.total - row.reserved) * row.allocation_ratio
    ]


def _differences(db: sa.Connection, holdings: Mapping[str, Allocations]) -> list[str]:
    usage, providers, classes = tables.allocations, tables.resource_providers, tables.resource_classes
    names = {row.id: row.name for row in db.execute(sa.select(classes.c.id, classes.c.name))}
    stored: dict[str, dict[str, dict[str, int]]] = collections.defaultdict(lambda: collections.defaultdict(dict))
    for consumer, provider, name, amount in db.execute(
        sa.select(usage.c.consumer_id, providers.c.uuid, usage.c.resource_class_id, usage.c.used).join(
            providers, usage.c.resource_provider_id == providers.c.id
        )
    ):
        stored[consumer][provider][names[name]] = amount
    return [
        f"consumer {consumer} holds {dict(stored.get(consumer, {}))}, but the response said {dict(expected)}"
        for consumer, expected in holdings.items()
        if stored.get(consumer) != expected
    ]


def _numa_violations(db: sa.Connection, holdings: Mapping[str, Allocations]) -> list[str]:
    """Return a sentence for each consumer with providers of several NUMA nodes.

    A node is a child of its root, and a device is a child of a node.
    """
    providers = tables.resource_providers
    rows = db.execute(
        sa.select(providers.c.id, providers.c.uuid, providers.c.parent_provider_id, providers.c.root_provider_id)
    )
    node = {
        row.uuid: row.id if row.parent_provider_id == row.root_provider_id else row.parent_provider_id for row in rows
    }
    return [
        f"consumer {consumer} has providers of several NUMA nodes"
        for consumer, allocations in holdings.items()
        if len({node[provider] for provider in allocations}) != 1
    ]
