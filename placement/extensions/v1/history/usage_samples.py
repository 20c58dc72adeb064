"""Usage samples: what all providers together have of each class, and how much of it is used, every ten minutes."""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from placement.db.schema.tables import allocations, inventories, resource_classes
from placement.db.writes.transaction import Reading
from placement.extensions.v1.history.tables import usage_samples
from placement.objects import capacity

#: The largest capacity that is stored; absurd ratios give more.
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class UsageSample:
    """The sums over all providers for one resource class, in its units."""

    #: Naive, UTC.
    at: datetime.datetime
    capacity: int
    used: int

    @classmethod
    def of_sums(cls, at: datetime.datetime, capacity: float, used: int) -> Self:
        """Return a sample; its capacity, which may be negative or too large, is limited to what can be stored."""
        return cls(at, min(max(int(capacity), 0), _LARGEST), used)

    @classmethod
    def between(
        cls,
        db: Reading,
        since: datetime.datetime,
        until: datetime.datetime,
        most: int,
        resource_class: str | None = None,
    ) -> dict[str, list[Self]]:
        """Return the samples of a period, in order, by class.

        Args:
            since: Its beginning (naive, UTC).
            until: Its end, exclusive; later than its beginning.
            most: How many samples of a class at most.  If there are more, the period is divided into this many equal
                spans, and only the last sample of each is returned.
            resource_class: The name of the only class; None for all.
        """
        shown = moments_between(db, since, until, most, resource_class)
        wanted = _S.at.in_(shown), is_of(_S.resource_class, resource_class)
        rows = db.execute(sa.select(usage_samples).where(*wanted).order_by(_S.resource_class, _S.at))
        found: dict[str, list[Self]] = {}
        for row in rows:
            found.setdefault(row.resource_class, []).append(cls(row.at, row.capacity, row.used))
        return found


def moments_between(
    db: Reading, since: datetime.datetime, until: datetime.datetime, most: int, resource_class: str | None
) -> Sequence[datetime.datetime]:
    """Return when the samples were taken that ``UsageSample.between`` returns."""
    period = sa.and_(_S.at >= since, _S.at < until, is_of(_S.resource_class, resource_class))
    moments = db.execute(sa.select(_S.at).where(period).distinct().order_by(_S.at)).scalars().all()
    return spread(moments, since, (until - since) / most) if len(moments) > most else moments


def is_of(column: sa.ColumnElement[str], resource_class: str | None) -> sa.ColumnElement[bool]:
    """Return the condition that a row is of a class; None for any."""
    return sa.true() if resource_class is None else column == resource_class


def spread(
    moments: Sequence[datetime.datetime], since: datetime.datetime, span: datetime.timedelta
) -> list[datetime.datetime]:
    """Return the last moment in each span after a beginning; the moments must be in order."""
    return [*{(moment - since) // span: moment for moment in moments}.values()]


# --- the present -----------------------------------------------------------------------------------------------------


def present_rows(db: Reading, at: datetime.datetime) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a sample of the present usage: one for each class with an inventory or an allocation."""
    capacities: defaultdict[str, float] = defaultdict(float)
    for row in db.execute(_INVENTORIES):
        capacities[row.name] += capacity_of(row)
    used = {row.name: int(row.used) for row in db.execute(_USED)}
    samples = ((name, UsageSample.of_sums(at, capacities[name], used.get(name, 0))) for name in {**capacities, **used})
    return [
        {"at": at, "resource_class": name, "capacity": sample.capacity, "used": sample.used} for name, sample in samples
    ]


def capacity_of(row: Any) -> float:
    """Return the capacity of equal inventories: a row with the columns ``EQUAL``, and their ``number``."""
    whole: float = math.floor(capacity.capacity(row.total, row.reserved, row.allocation_ratio)) * row.number
    return whole


_I, _A, _C, _S = inventories.c, allocations.c, resource_classes.c, usage_samples.c
#: Most inventories of a class are equal, so equal ones are grouped.
EQUAL = (_I.total, _I.reserved, _I.allocation_ratio)
_INVENTORIES = (
    sa.select(_C.name, *EQUAL, sa.func.count().label("number"))
    .join_from(inventories, resource_classes, _C.id == _I.resource_class_id)
    .group_by(_C.name, *EQUAL)
)
_USED = (
    sa.select(_C.name, sa.func.sum(_A.used).label("used"))
    .join_from(allocations, resource_classes, _C.id == _A.resource_class_id)
    .group_by(_C.name)
)
