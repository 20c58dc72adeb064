"""Usage: the allocated amounts, and the number of consumers, by provider, by owner and by consumer type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from placement.db import batches
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

#: The consumer type that stands for consumers without a type, in requests and responses.
UNKNOWN_TYPE = "unknown"
#: The consumer type that stands for the sum over all types.
ALL_TYPES = "all"


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of consumers of a group, and the sum of their allocations."""

    consumer_count: int
    #: Amounts by class.
    resources: dict[str, int]

    @staticmethod
    def of_provider(db: Reading, provider: ResourceProvider) -> dict[str, int]:
        """Return the used amounts by class, for every class in the provider's inventories."""
        rows = db.execute(_OF_PROVIDER, {"provider": provider.id})
        return {row.resource_class: int(row.used) for row in rows}

    @staticmethod
    def of_project(db: Reading, project: str, user: str | None = None) -> dict[str, int]:
        """Return the amounts by class that consumers of the project hold; with ``user``, only this user's consumers."""
        rows = _rows_of_owner(db, _AMOUNTS.group_by(resource_classes.c.name), project, user)
        return {row.resource_class: int(row.used) for row in rows}

    @classmethod
    def by_type(
        cls, db: Reading, project: str, user: str | None = None, consumer_type: str | None = None
    ) -> dict[str, Self]:
        """Return the usage of the project, or of a user in it, by consumer type.

        Args:
            consumer_type: A type, ``unknown``, or ``all`` for the sum over all types; None for every type.
        """
        amounts, counts = _AMOUNTS.group_by(resource_classes.c.name), _COUNTS
        grouping = [] if consumer_type == ALL_TYPES else [consumer_types.c.name]
        label: sa.ColumnElement[str] = sa.func.coalesce(consumer_types.c.name, UNKNOWN_TYPE)
        if consumer_type == ALL_TYPES:
            label = sa.literal(ALL_TYPES)
        elif consumer_type is not None:
            unknown = consumer_type == UNKNOWN_TYPE
            column = consumer_types.c.name
            has_type = consumers.c.consumer_type_id.is_(None) if unknown else column == consumer_type
            amounts, counts = amounts.where(has_type), counts.where(has_type)
        resources: dict[str, dict[str, int]] = {}
        for row in _rows_of_owner(db, amounts.add_columns(label.label("type")).group_by(*grouping), project, user):
            resources.setdefault(row.type, {})[row.resource_class] = int(row.used)
        rows = _rows_of_owner(db, counts.add_columns(label.label("type")).group_by(*grouping), project, user)
        count = {row.type: row.consumers for row in rows}
        return {name: cls(count.get(name, 0), sums) for name, sums in resources.items()}


def count_by_provider(db: Reading, ids: Iterable[int]) -> dict[int, int]:
    """Return the number of consumers with allocations on each of these providers, by provider id.

    Providers without allocations are left out.  A consumer has at most one allocation of a class on a provider.  So if
    only one class is allocated on a provider, such as a storage pool that all consumers use, its allocations are
    counted in an index.  For other providers all allocations are read, in several short statements
    (docs: performance-overview).
    """
    ordered = sorted(ids)
    counts: dict[int, int] = {}
    for start in range(0, len(ordered), batches.BATCH_SIZE):
        batch = ordered[start : start + batches.BATCH_SIZE]
        in_batch = frozenset(batch)
        rows = [row for row in db.execute(_ALLOCATIONS_ON.where(_has_id(batch))) if row.provider in in_batch]
        counts |= {row.provider: row.allocations for row in rows if row.first == row.last}
        several_classes = sorted(row.provider for row in rows if row.first != row.last)
        if several_classes:
            statement = _CONSUMERS_ON.where(_has_id(several_classes))
            distinct = {row.provider: row.consumers for row in db.execute(statement)}
            counts |= {id_: distinct[id_] for id_ in several_classes if id_ in distinct}
    return counts


def count_distinct(db: Reading, ids: Sequence[int]) -> int:
    """Return the number of consumers with allocations on any of these providers, each counted once."""
    statement = sa.select(sa.func.count(_A.consumer_id.distinct())).where(_PROVIDER.in_(ids))
    return int(db.execute(statement).scalar_one())


def _has_id(ids: Sequence[int]) -> sa.ColumnElement[bool]:
    """Return a condition that all of these ids, in ascending order, meet; ids between them may meet it as well."""
    dense = ids[-1] - ids[0] < 2 * len(ids)
    return _PROVIDER.between(ids[0], ids[-1]) if dense else _PROVIDER.in_(ids)


_A, _C = allocations.c, consumers.c
#: The used amount of an inventory, in a query for inventories; NULL without allocations.
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
#: The number of allocations, and the least and the greatest class id.
_ALLOCATIONS_ON = sa.select(
    *(_PROVIDER.label("provider"), sa.func.count().label("allocations")),
    *(sa.func.min(_A.resource_class_id).label("first"), sa.func.max(_A.resource_class_id).label("last")),
).group_by(_PROVIDER)


def _rows_of_owner(db: Reading, query: sa.Select[Any], project: str, user: str | None) -> list[sa.Row[Any]]:
    """Return the rows about consumers of exactly this project, and of exactly this user unless it is None."""
    owner = {projects.c.external_id: project} | ({} if user is None else {users.c.external_id: user})
    query = query.where(*(column == text for column, text in owner.items())).group_by(*owner)
    rows = db.execute(query.add_columns(*owner))
    texts = (*owner.values(),)
    # Some collations also match a text in another case, or with trailing spaces.
    return [row for row in rows if tuple(row[-len(texts) :]) == texts]
