"""Samples of the usage, as they are read: what all providers together had of each class, and what was used of it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from placement.db.writes.transaction import Reading
from placement.extensions.v1.history.tables import usage_samples


@dataclass(frozen=True, slots=True)
class UsageSample:
    """The sums over all providers in one resource class, in its units."""

    #: Naive, UTC.
    at: datetime.datetime
    capacity: int
    used: int

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


_S = usage_samples.c
