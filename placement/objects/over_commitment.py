"""Inventories of which more is used than can be held: they were cut, or another implementation lost a race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.tables import allocations, inventories, resource_classes, resource_providers
from placement.objects import capacity

#: Providers in one statement.
_MANY = 1000


@dataclass(frozen=True, slots=True)
class OverCommitment:
    """What is used of one class on one provider, and how much of it could be held."""

    uuid: str
    name: str | None
    #: None if the class itself is gone.
    resource_class: str | None
    used: int
    #: 0 if there is no inventory.
    capacity: int

    def __str__(self) -> str:
        name = "" if self.name is None else f" ({self.name})"
        return f"{self.uuid}{name}: {self.resource_class or 'a deleted class'}, {self.used} of {self.capacity}"

    @classmethod
    def all(cls, database: Database, examined: Callable[[int], object]) -> list[Self]:
        """Every over-commitment of the database, in the order of the providers' ids.

        Args:
            examined: Called with the number of providers of each batch, once the batch is read.
        """
        found: list[Self] = []
        ids = _next_ids(database, 0)
        while ids:
            found += filter(None, map(cls._of_row, _usage(database, ids[0], ids[-1])))
            examined(len(ids))
            ids = _next_ids(database, ids[-1])
        return found

    @classmethod
    def _of_row(cls, row: Any) -> Self | None:
        """The over-commitment that a row of usage is, or None."""
        limit = 0.0 if row.total is None else capacity.capacity(row.total, row.reserved, row.allocation_ratio)
        if capacity.has_room(0, int(row.used), limit):
            return None
        return cls(row.uuid, row.name, row.resource_class, int(row.used), int(limit))


def _next_ids(database: Database, after: int) -> Sequence[int]:
    """The ids of the next batch of providers, or none."""
    return database.read(lambda db: db.execute(_NEXT, {"after": after}).scalars().all())


def _usage(database: Database, first: int, last: int) -> Sequence[Any]:
    """Usage and inventories of the providers whose ids are from ``first`` to ``last``."""
    return database.read(lambda db: db.execute(_USED, {"first": first, "last": last}).all())


_P, _I, _A = resource_providers.c, inventories.c, allocations.c
_NEXT = sa.select(_P.id).where(_P.id > sa.bindparam("after")).order_by(_P.id).limit(_MANY)
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
