"""Inventories whose usage exceeds their capacity, for example after an inventory was reduced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.tables import allocations, inventories, resource_classes, resource_providers
from placement.objects import capacity

#: Providers per statement.
_BATCH_SIZE = 1000


@dataclass(frozen=True, slots=True)
class OverCommitment:
    """The usage and the capacity of one class on one provider, if the usage is greater."""

    uuid: str
    name: str | None
    #: The name of the class; None if it was deleted.
    resource_class: str | None
    used: int
    #: The capacity; 0 without an inventory.
    capacity: int

    def __str__(self) -> str:
        name = "" if self.name is None else f" ({self.name})"
        return f"{self.uuid}{name}: {self.resource_class or 'a deleted class'}, {self.used} of {self.capacity}"

    @classmethod
    def all(cls, database: Database, examined: Callable[[int], object]) -> list[Self]:
        """Return every over-commitment in the database, ordered by provider id.

        Args:
            examined: A callback after each batch with the number of its providers.
        """
        over_commitments: list[Self] = []
        ids = _next_ids(database, 0)
        while ids:
            over_commitments += filter(None, map(cls._of_row, _read_usage(database, ids[0], ids[-1])))
            examined(len(ids))
            ids = _next_ids(database, ids[-1])
        return over_commitments

    @classmethod
    def _of_row(cls, row: Any) -> Self | None:
        """Return the over-commitment in a row of ``_USED``; None if the usage fits."""
        limit = 0.0 if row.total is None else capacity.capacity(row.total, row.reserved, row.allocation_ratio)
        if capacity.within_capacity(0, int(row.used), limit):
            return None
        return cls(row.uuid, row.name, row.resource_class, int(row.used), int(limit))


def _next_ids(database: Database, after: int) -> Sequence[int]:
    """Return the ids of the next batch of providers."""
    return database.read(lambda db: db.execute(_NEXT, {"after": after}).scalars().all())


def _read_usage(database: Database, first: int, last: int) -> Sequence[Any]:
    """Return usage and inventories of the providers with ids from ``first`` to ``last``."""
    return database.read(lambda db: db.execute(_USED, {"first": first, "last": last}).all())


_P, _I, _A = resource_providers.c, inventories.c, allocations.c
_NEXT = sa.select(_P.id).where(_P.id > sa.bindparam("after")).order_by(_P.id).limit(_BATCH_SIZE)
_SUMS = (
    sa.select(_A.resource_provider_id, _A.resource_class_id, sa.func.sum(_A.used).label("used"))
    .where(_A.resource_provider_id.between(sa.bindparam("first"), sa.bindparam("last")))
    .group_by(_A.resource_provider_id, _A.resource_class_id)
    .subquery()
)
_USED = (
    sa.select(
        *(_P.uuid, _P.name, resource_classes.c.name.label("resource_class"), _SUMS.c.used),
        *(_I.total, _I.reserved, _I.allocation_ratio),
    )
    .select_from(_SUMS)
    .join(resource_providers, _P.id == _SUMS.c.resource_provider_id)
    .outerjoin(resource_classes, resource_classes.c.id == _SUMS.c.resource_class_id)
    .outerjoin(
        inventories,
        (_I.resource_provider_id == _SUMS.c.resource_provider_id) & (_I.resource_class_id == _SUMS.c.resource_class_id),
    )
    .order_by(_P.id, _SUMS.c.resource_class_id)
)
