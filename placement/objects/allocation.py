"""What consumers hold, read: by consumer, by provider, and added up."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from placement.db.tables import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    projects,
    resource_classes,
    resource_providers,
    users,
)
from placement.db.transaction import Reading
from placement.objects.provider import ResourceProvider

#: The name under which consumers without a type are shown, and asked for.
UNKNOWN_TYPE = "unknown"
ALL_TYPES = "all"


@dataclass(slots=True)
class Held:
    """What one consumer holds: provider uuid -> class -> amount, with everything its record shows."""

    project: str
    user: str
    consumer_generation: int
    consumer_type: str
    modified: datetime.datetime | None = None
    resources: dict[str, dict[str, int]] = field(default_factory=dict)
    provider_generations: dict[str, int] = field(default_factory=dict)


def of_consumer(db: Reading, uuid: str) -> Held | None:
    """All that the consumer holds, or None if that is nothing; the spelling of the uuid counts."""
    held = None
    for row in db.execute(_OF_CONSUMER, {"consumer": uuid}):
        if row.consumer != uuid:
            continue  # some collations find it in another case, too
        if held is None:
            held = Held(row.project, row.user, row.generation, row.consumer_type or UNKNOWN_TYPE)
        held.resources.setdefault(row.provider, {})[row.resource_class] = row.used
        held.provider_generations[row.provider] = row.provider_generation
        if row.created_at is not None and (held.modified is None or row.created_at > held.modified):
            held.modified = row.created_at
    return held


@dataclass(slots=True)
class HeldHere:
    """What one consumer holds on one provider: class -> amount."""

    consumer_generation: int
    resources: dict[str, int] = field(default_factory=dict)


def of_provider(db: Reading, provider: ResourceProvider) -> tuple[dict[str, HeldHere], datetime.datetime | None]:
    """Consumer uuid -> what it holds on the provider; and when the newest of these was written."""
    held: dict[str, HeldHere] = {}
    newest = None
    for row in db.execute(_OF_PROVIDER, {"provider": provider.id}):
        held.setdefault(row.consumer, HeldHere(row.generation)).resources[row.resource_class] = row.used
        if row.created_at is not None and (newest is None or row.created_at > newest):
            newest = row.created_at
    return held, newest


def usage_of_provider(db: Reading, provider: ResourceProvider) -> dict[str, int]:
    """Class -> amount used, for every class that the provider has inventory of."""
    rows = db.execute(_USAGE_OF_PROVIDER, {"provider": provider.id})
    return {row.resource_class: int(row.used) for row in rows}


@dataclass(frozen=True, slots=True)
class Usage:
    """What a group of consumers holds together: class -> amount; and how many they are."""

    consumer_count: int
    resources: dict[str, int]


def usage_of_project(db: Reading, project: str, user: str | None = None) -> dict[str, int]:
    """Class -> amount that all consumers of the project (and of the user in it) hold."""
    rows = db.execute(_filtered(_USAGE, project, user).group_by(resource_classes.c.name))
    return {row.resource_class: int(row.used) for row in rows}


def usage_by_type(
    db: Reading, project: str, user: str | None = None, consumer_type: str | None = None
) -> dict[str, Usage]:
    """Consumer type -> what its consumers hold: of every type, of one, of ``unknown``, or of ``all`` as one."""
    amounts = _filtered(_USAGE, project, user)
    counts = _filtered(_COUNT, project, user)
    if consumer_type == ALL_TYPES:
        label: sa.ColumnElement[str] = sa.literal(ALL_TYPES)
    else:
        label = sa.func.coalesce(consumer_types.c.name, UNKNOWN_TYPE)
        if consumer_type == UNKNOWN_TYPE:
            wanted: sa.ColumnElement[bool] = consumers.c.consumer_type_id.is_(None)
            amounts, counts = amounts.where(wanted), counts.where(wanted)
        elif consumer_type is not None:
            wanted = consumer_types.c.name == consumer_type
            amounts, counts = amounts.where(wanted), counts.where(wanted)
    grouping = [] if consumer_type == ALL_TYPES else [consumer_types.c.name]
    resources: dict[str, dict[str, int]] = {}
    for row in db.execute(amounts.add_columns(label.label("type")).group_by(resource_classes.c.name, *grouping)):
        resources.setdefault(row.type, {})[row.resource_class] = int(row.used)
    count = {row.type: row.consumers for row in db.execute(counts.add_columns(label.label("type")).group_by(*grouping))}
    return {name: Usage(count.get(name, 0), held) for name, held in resources.items()}


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
_USED = (
    sa.select(sa.func.sum(_A.used))
    .where(
        _A.resource_provider_id == inventories.c.resource_provider_id,
        _A.resource_class_id == inventories.c.resource_class_id,
    )
    .correlate(inventories)
    .scalar_subquery()
)
_USAGE_OF_PROVIDER = (
    sa.select(resource_classes.c.name.label("resource_class"), sa.func.coalesce(_USED, 0).label("used"))
    .join(inventories, inventories.c.resource_class_id == resource_classes.c.id)
    .where(inventories.c.resource_provider_id == sa.bindparam("provider"))
    .order_by(resource_classes.c.id)
)
_BY_PROJECT = (
    allocations.join(consumers, _C.uuid == _A.consumer_id)
    .join(projects, projects.c.id == _C.project_id)
    .join(users, users.c.id == _C.user_id)
    .join(resource_classes, resource_classes.c.id == _A.resource_class_id)
    .outerjoin(consumer_types, consumer_types.c.id == _C.consumer_type_id)
)
_USAGE = sa.select(resource_classes.c.name.label("resource_class"), sa.func.sum(_A.used).label("used")).select_from(
    _BY_PROJECT
)
_COUNT = sa.select(sa.func.count(sa.distinct(_A.consumer_id)).label("consumers")).select_from(_BY_PROJECT)


def _filtered(query: sa.Select[Any], project: str, user: str | None) -> sa.Select[Any]:
    query = query.where(projects.c.external_id == project)
    return query if user is None else query.where(users.c.external_id == user)
