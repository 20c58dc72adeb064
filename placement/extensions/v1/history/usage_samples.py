"""Usage samples: capacity and usage of each resource class over all providers, every ten minutes."""

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

#: Maximum capacity that is stored; extreme allocation ratios result in larger capacities.
_MAX_CAPACITY = 2**62


@dataclass(frozen=True, slots=True)
class UsageSample:
    """Sums over all providers for one resource class, in its units."""

    #: Naive, UTC.
    at: datetime.datetime
    capacity: int
    used: int

    @classmethod
    def of_sums(cls, at: datetime.datetime, capacity: float, used: int) -> Self:
        """Return a sample, with a capacity clipped to the range that can be stored."""
        return cls(at, min(max(int(capacity), 0), _MAX_CAPACITY), used)

    @classmethod
    def read(
        cls,
        db: Reading,
        since: datetime.datetime,
        until: datetime.datetime,
        limit: int,
        resource_class: str | None = None,
    ) -> dict[str, list[Self]]:
        """Return the samples of a period, in order, by class.

        Args:
            since: The beginning of the period (naive, UTC).
            until: The end of the period, exclusive; later than the beginning.
            limit: The maximum number of samples of a class.  A period with more samples is divided into this number of
                equal spans, and only the last sample of each span is returned.
            resource_class: The class of the samples; None for all classes.
        """
        timestamps = timestamps_between(db, since, until, limit, resource_class)
        conditions = _S.at.in_(timestamps), of_class(_S.resource_class, resource_class)
        rows = db.execute(sa.select(usage_samples).where(*conditions).order_by(_S.resource_class, _S.at))
        samples: dict[str, list[Self]] = {}
        for row in rows:
            samples.setdefault(row.resource_class, []).append(cls(row.at, row.capacity, row.used))
        return samples


def timestamps_between(
    db: Reading, since: datetime.datetime, until: datetime.datetime, limit: int, resource_class: str | None
) -> Sequence[datetime.datetime]:
    """Return the timestamps of the samples that ``UsageSample.read`` returns."""
    period = sa.and_(_S.at >= since, _S.at < until, of_class(_S.resource_class, resource_class))
    timestamps = db.execute(sa.select(_S.at).where(period).distinct().order_by(_S.at)).scalars().all()
    return last_of_spans(timestamps, since, (until - since) / limit) if len(timestamps) > limit else timestamps


def of_class(column: sa.ColumnElement[str], resource_class: str | None) -> sa.ColumnElement[bool]:
    """Return the condition that a row belongs to a class; always true for None."""
    return sa.true() if resource_class is None else column == resource_class


def last_of_spans(
    timestamps: Sequence[datetime.datetime], since: datetime.datetime, span: datetime.timedelta
) -> list[datetime.datetime]:
    """Return the last timestamp of each span since a beginning, given timestamps in ascending order."""
    return [*{(timestamp - since) // span: timestamp for timestamp in timestamps}.values()]


# --- the present -----------------------------------------------------------------------------------------------------


def present_rows(db: Reading, at: datetime.datetime) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a sample of the present usage, one for each class with an inventory or an allocation."""
    capacities: defaultdict[str, float] = defaultdict(float)
    for row in db.execute(_INVENTORIES):
        capacities[row.name] += capacity_of(row)
    used = {row.name: int(row.used) for row in db.execute(_USED)}
    samples = ((name, UsageSample.of_sums(at, capacities[name], used.get(name, 0))) for name in {**capacities, **used})
    return [
        {"at": at, "resource_class": name, "capacity": sample.capacity, "used": sample.used} for name, sample in samples
    ]


def capacity_of(row: Any) -> float:
    """Return the total capacity of a row: ``number`` inventories with equal ``INVENTORY_COLUMNS``."""
    total: float = math.floor(capacity.capacity(row.total, row.reserved, row.allocation_ratio)) * row.number
    return total


_I, _A, _C, _S = inventories.c, allocations.c, resource_classes.c, usage_samples.c
#: The columns that determine a capacity.  Most inventories of a class are equal, so equal inventories are grouped.
INVENTORY_COLUMNS = (_I.total, _I.reserved, _I.allocation_ratio)
_INVENTORIES = (
    sa.select(_C.name, *INVENTORY_COLUMNS, sa.func.count().label("number"))
    .join_from(inventories, resource_classes, _C.id == _I.resource_class_id)
    .group_by(_C.name, *INVENTORY_COLUMNS)
)
_USED = (
    sa.select(_C.name, sa.func.sum(_A.used).label("used"))
    .join_from(allocations, resource_classes, _C.id == _A.resource_class_id)
    .group_by(_C.name)
)
