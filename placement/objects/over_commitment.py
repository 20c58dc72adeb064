"""Providers of which more is used than they have: by a race of another implementation, or because they were shrunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.tables import allocations, inventories, resource_classes, resource_providers
from placement.db.transaction import Reading
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
    #: Nothing if there is no inventory.
    capacity: int


def count(db: Reading) -> int:
    """How many providers there are to look at."""
    return int(db.execute(sa.select(sa.func.count()).select_from(resource_providers)).scalar_one())


def of_all(database: Database, looked_at: Callable[[int], None]) -> list[OverCommitment]:
    """Every one of them, in the order of the providers' ids; ``looked_at`` hears how many more were looked at."""
    found: list[OverCommitment] = []
    ids = _next(database, 0)
    while ids:
        found += filter(None, map(_judged, _used(database, ids[0], ids[-1])))
        looked_at(len(ids))
        ids = _next(database, ids[-1])
    return found


def _next(database: Database, after: int) -> Sequence[int]:
    """The ids of the providers that come after this one; not all of them."""
    return database.read(lambda db: db.execute(_NEXT, {"after": after}).scalars().all())


def _used(database: Database, first: int, last: int) -> Sequence[Any]:
    """What is used, and what there is, from one provider to another."""
    return database.read(lambda db: db.execute(_USED, {"first": first, "last": last}).all())


def _judged(row: Any) -> OverCommitment | None:
    room = 0.0 if row.total is None else capacity.capacity(row.total, row.reserved, row.allocation_ratio)
    if capacity.has_room(0, int(row.used), room):
        return None
    return OverCommitment(row.uuid, row.name, row.resource_class, int(row.used), int(room))


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
