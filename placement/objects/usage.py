"""Usage: the amounts that consumers hold, by provider, by project and user, and by consumer type; and their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from placement.db.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    projects,
    resource_classes,
    users,
)
from placement.db.writes.transaction import Reading
from placement.objects.provider import ResourceProvider

#: The consumer type under which consumers without a type are shown, and asked for.
UNKNOWN_TYPE = "unknown"
#: The consumer type that stands for the sum over all types.
ALL_TYPES = "all"
#: Providers in one statement; MariaDB makes a table of a list of a thousand or more.
MANY = 999


@dataclass(frozen=True, slots=True)
class Usage:
    """What a group of consumers holds together."""

    consumer_count: int
    #: Amounts by class.
    resources: dict[str, int]

    @staticmethod
    def of_provider(db: Reading, provider: ResourceProvider) -> dict[str, int]:
        """Amounts by class, for every class of which the provider has inventory."""
        rows = db.execute(_OF_PROVIDER, {"provider": provider.id})
        return {row.resource_class: int(row.used) for row in rows}

    @staticmethod
    def of_project(db: Reading, project: str, user: str | None = None) -> dict[str, int]:
        """Amounts by class that all consumers of the project hold, or those of a user in it."""
        rows = _owned(db, _AMOUNTS.group_by(resource_classes.c.name), project, user)
        return {row.resource_class: int(row.used) for row in rows}

    @classmethod
    def by_type(
        cls, db: Reading, project: str, user: str | None = None, consumer_type: str | None = None
    ) -> dict[str, Self]:
        """What consumers of the project, or of a user in it, hold, by consumer type.

        Args:
            consumer_type: One type, ``unknown``, or ``all`` for the sum over all types; None gives each type.
        """
        amounts, counts = _AMOUNTS.group_by(resource_classes.c.name), _COUNTS
        grouping = [] if consumer_type == ALL_TYPES else [consumer_types.c.name]
        label: sa.ColumnElement[str] = sa.func.coalesce(consumer_types.c.name, UNKNOWN_TYPE)
        if consumer_type == ALL_TYPES:
            label = sa.literal(ALL_TYPES)
        elif consumer_type is not None:
            unknown = consumer_type == UNKNOWN_TYPE
            column = consumer_types.c.name
            wanted = consumers.c.consumer_type_id.is_(None) if unknown else column == consumer_type
            amounts, counts = amounts.where(wanted), counts.where(wanted)
        resources: dict[str, dict[str, int]] = {}
        for row in _owned(db, amounts.add_columns(label.label("type")).group_by(*grouping), project, user):
            resources.setdefault(row.type, {})[row.resource_class] = int(row.used)
        rows = _owned(db, counts.add_columns(label.label("type")).group_by(*grouping), project, user)
        count = {row.type: row.consumers for row in rows}
        return {name: cls(count.get(name, 0), held) for name, held in resources.items()}


def count_by_provider(db: Reading, ids: Iterable[int]) -> dict[int, int]:
    """Return how many consumers hold something on each of these providers, by its id.

    Providers on which nothing is held are left out.  A consumer has one allocation of a class on a provider.  So where
    one class is held an index has the number, for example of a pool that all consumers use.  Elsewhere all allocations
    are read, by several statements, of which none takes long (docs: performance-overview).
    """
    ordered = sorted(ids)
    counts: dict[int, int] = {}
    for start in range(0, len(ordered), MANY):
        batch = ordered[start : start + MANY]
        wanted = frozenset(batch)
        held = [row for row in db.execute(_HELD_ON.where(_among(batch))) if row.provider in wanted]
        counts |= {row.provider: row.held for row in held if row.first == row.last}
        several = sorted(row.provider for row in held if row.first != row.last)
        if several:
            found = {row.provider: row.consumers for row in db.execute(_CONSUMERS_ON.where(_among(several)))}
            counts |= {provider_id: found[provider_id] for provider_id in several if provider_id in found}
    return counts


def count_among(db: Reading, ids: Sequence[int]) -> int:
    """Return how many consumers hold something on one of these providers or several."""
    statement = sa.select(sa.func.count(_A.consumer_id.distinct())).where(_PROVIDER.in_(ids))
    return int(db.execute(statement).scalar_one())


def _among(ids: Sequence[int]) -> sa.ColumnElement[bool]:
    """Return the condition for these providers, ascending, and perhaps for others between them."""
    dense = ids[-1] - ids[0] < 2 * len(ids)
    return _PROVIDER.between(ids[0], ids[-1]) if dense else _PROVIDER.in_(ids)


_A, _C = allocations.c, consumers.c
#: The amount that consumers hold of an inventory, in a query for inventories; NULL where they hold nothing.
USED = (
    sa.select(sa.func.sum(_A.used))
    .where(
        _A.resource_provider_id == inventories.c.resource_provider_id,
        _A.resource_class_id == inventories.c.resource_class_id,
    )
    .correlate(inventories)
    .scalar_subquery()
)
_OF_PROVIDER = (
    sa.select(resource_classes.c.name.label("resource_class"), sa.func.coalesce(USED, 0).label("used"))
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
_AMOUNTS = sa.select(resource_classes.c.name.label("resource_class"), sa.func.sum(_A.used).label("used")).select_from(
    _BY_PROJECT
)
_COUNTS = sa.select(sa.func.count(sa.distinct(_A.consumer_id)).label("consumers")).select_from(_BY_PROJECT)

_PROVIDER = _A.resource_provider_id
_CONSUMERS_ON = sa.select(_PROVIDER.label("provider"), sa.func.count(sa.distinct(_A.consumer_id)).label("consumers"))
_CONSUMERS_ON = _CONSUMERS_ON.group_by(_PROVIDER)
#: The number of allocations, and the least and the greatest class.
_HELD_ON = sa.select(
    *(_PROVIDER.label("provider"), sa.func.count().label("held")),
    *(sa.func.min(_A.resource_class_id).label("first"), sa.func.max(_A.resource_class_id).label("last")),
).group_by(_PROVIDER)


def _owned(db: Reading, query: sa.Select[Any], project: str, user: str | None) -> list[sa.Row[Any]]:
    """Return the rows about consumers of exactly this project, and of exactly this user if one is named."""
    wanted = {projects.c.external_id: project} | ({} if user is None else {users.c.external_id: user})
    query = query.where(*(column == text for column, text in wanted.items())).group_by(*wanted)
    rows = db.execute(query.add_columns(*wanted))
    texts = (*wanted.values(),)
    # Some collations find a text in another case, and with spaces at its end.
    return [row for row in rows if tuple(row[-len(texts) :]) == texts]
