"""Checks of a database after a measurement, which read all of it: capacity, what consumers hold, and where."""

from __future__ import annotations

import collections
from collections.abc import Mapping

import sqlalchemy as sa
from placing_requests import Held

from placement.db.engine.dialects import normalise
from placement.db.schema import tables


def failures(database_url: str, held: Mapping[str, Held], together: bool) -> list[str]:
    """Return what is wrong in the database, as sentences.

    Args:
        held: what consumers were told that they hold.
        together: whether each of these consumers must have all providers below one NUMA node.
    """
    engine = sa.create_engine(normalise(database_url))
    with engine.connect() as db:
        found = [*_over_capacity(db), *_not_as_told(db, held), *(_divided(db, held) if together else ())]
    engine.dispose()
    return found


def largest_free_share(database_url: str) -> float:
    """Return the largest part of a host's capacity that a host has free, each of flat hosts that are alike."""
    engine = sa.create_engine(normalise(database_url))
    usage, of = tables.allocations, tables.inventories
    used = sa.func.coalesce(
        sa.select(sa.func.sum(usage.c.used))
        .where(
            usage.c.resource_provider_id == of.c.resource_provider_id,
            usage.c.resource_class_id == of.c.resource_class_id,
        )
        .scalar_subquery(),
        0,
    )
    capacity = (of.c.total - of.c.reserved) * of.c.allocation_ratio
    free = sa.select(sa.func.min((capacity - used) / capacity).label("share")).group_by(of.c.resource_provider_id)
    with engine.connect() as db:
        share = db.execute(sa.select(sa.func.max(free.subquery().c.share))).scalar()
    engine.dispose()
    return float(share or 0)


def _over_capacity(db: sa.Connection) -> list[str]:
    usage, of = tables.allocations, tables.inventories
    provider, name = usage.c.resource_provider_id, usage.c.resource_class_id
    used = sa.select(provider, name, sa.func.sum(usage.c.used).label("used")).group_by(provider, name).subquery()
    same = sa.and_(
        of.c.resource_provider_id == used.c.resource_provider_id, of.c.resource_class_id == used.c.resource_class_id
    )
    rows = db.execute(
        sa.select(used, of.c.total, of.c.reserved, of.c.allocation_ratio).select_from(used.outerjoin(of, same))
    )
    return [
        f"provider {row.resource_provider_id}, class {row.resource_class_id}: {int(row.used)} of {row.total} used"
        for row in rows
        if row.total is None or row.used > (row.total - row.reserved) * row.allocation_ratio
    ]


def _not_as_told(db: sa.Connection, held: Mapping[str, Held]) -> list[str]:
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
        f"consumer {consumer} was told {dict(told)}, and holds {dict(stored.get(consumer, {}))}"
        for consumer, told in held.items()
        if stored.get(consumer) != told
    ]


def _divided(db: sa.Connection, held: Mapping[str, Held]) -> list[str]:
    """Return sentences on the consumers whose providers are of several NUMA nodes.

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
        for consumer, told in held.items()
        if len({node[provider] for provider in told}) != 1
    ]
