"""Samples of the usage: what all providers together have of each class, and what is used of it, every ten minutes.

They are for pictures of the past (docs/adr/0042).  A sample bears the beginning of its interval, by the clock of the
database, so that each interval has one, whichever process takes it.
"""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.clock import CLOCK
from placement.db.schema.tables import allocations, inventories, resource_classes
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.v1.history.tables import usage_samples
from placement.objects import capacity

#: The time between two samples.
INTERVAL = datetime.timedelta(minutes=10)
#: The greatest capacity that is kept; absurd ratios give more.
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class UsageSample:
    """The sums over all providers in one resource class, in its units."""

    #: Naive, UTC.
    at: datetime.datetime
    capacity: int
    used: int

    @classmethod
    def of_sums(cls, at: datetime.datetime, capacity: float, used: int) -> Self:
        """Return a sample of a capacity that may be below nothing, or above all that is kept."""
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
            until: Its end, which is no part of it; later than its beginning.
            most: How many samples of a class at most.  Of more there are those of the last
                moment in each of so many equal spans.
            resource_class: The name of the only class.
        """
        condition = _S.resource_class == resource_class if resource_class is not None else sa.true()
        period = sa.and_(_S.at >= since, _S.at < until, condition)
        moments = db.execute(sa.select(_S.at).where(period).distinct().order_by(_S.at)).scalars().all()
        shown = spread(moments, since, (until - since) / most) if len(moments) > most else moments
        rows = db.execute(
            sa.select(usage_samples).where(_S.at.in_(shown), condition).order_by(_S.resource_class, _S.at)
        )
        found: dict[str, list[Self]] = {}
        for row in rows:
            found.setdefault(row.resource_class, []).append(cls(row.at, row.capacity, row.used))
        return found


def spread(
    moments: Sequence[datetime.datetime], since: datetime.datetime, span: datetime.timedelta
) -> list[datetime.datetime]:
    """Return the last moment of each span after a beginning, of moments in order."""
    return [*{(moment - since) // span: moment for moment in moments}.values()]


# --- taking them -----------------------------------------------------------------------------------------------------


def take(database: Database) -> None:
    """Insert the sample of the present interval, unless there is one; raises as ``Database.write``."""
    at = beginning(database.read(lambda db: db.execute(sa.select(CLOCK)).scalar_one()))
    if database.read(lambda db: _has_sample(db, at)):
        return
    # Read by themselves: SQLite would have all writes wait for the sums.
    rows = database.read(lambda db: _present(db, at))

    def insert(db: Transaction) -> None:
        # Of two processes that insert it at once, one collides: it is run again, and finds the other's.
        if rows and not _has_sample(db, at):
            db.execute(sa.insert(usage_samples), rows)

    database.write(insert)


def _has_sample(db: Reading, at: datetime.datetime) -> bool:
    return db.execute(sa.select(_S.at).where(_S.at == at).limit(1)).first() is not None


def beginning(moment: datetime.datetime) -> datetime.datetime:
    """Return the beginning of the interval of a moment (naive, UTC)."""
    return moment - (moment - datetime.datetime.min) % INTERVAL


def _present(db: Reading, at: datetime.datetime) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a sample of the present usage, of all classes with an inventory or an allocation."""
    capacities: defaultdict[str, float] = defaultdict(float)
    for row in db.execute(_INVENTORIES):
        whole = math.floor(capacity.capacity(row.total, row.reserved, row.allocation_ratio))
        capacities[row.name] += whole * row.number
    used = {row.name: int(row.used) for row in db.execute(_USED)}
    samples = ((name, UsageSample.of_sums(at, capacities[name], used.get(name, 0))) for name in {**capacities, **used})
    return [
        {"at": at, "resource_class": name, "capacity": sample.capacity, "used": sample.used} for name, sample in samples
    ]


_I, _A, _C, _S = inventories.c, allocations.c, resource_classes.c, usage_samples.c
# Most inventories of a class are equal to others.
_EQUAL = (_I.total, _I.reserved, _I.allocation_ratio)
_INVENTORIES = (
    sa.select(_C.name, *_EQUAL, sa.func.count().label("number"))
    .join_from(inventories, resource_classes, _C.id == _I.resource_class_id)
    .group_by(_C.name, *_EQUAL)
)
_USED = (
    sa.select(_C.name, sa.func.sum(_A.used).label("used"))
    .join_from(allocations, resource_classes, _C.id == _A.resource_class_id)
    .group_by(_C.name)
)
