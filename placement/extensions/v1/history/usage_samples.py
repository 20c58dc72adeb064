"""Usage samples: capacity and usage of each resource class over all providers, every ten minutes."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from placement.db.writes.transaction import Reading
from placement.extensions.v1.history.tables import usage_samples
from placement.index.column import Column
from placement.index.snapshot import Snapshot

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


def present_samples(snapshot: Snapshot, at: datetime.datetime) -> dict[str, UsageSample]:
    """Return the present usage as samples with a timestamp, by class; only classes with an inventory have one."""
    samples = {}
    for name, column in named_columns(snapshot):
        totals = column.totals()
        samples[name] = UsageSample.of_sums(at, totals.capacity, int(totals.used))
    return samples


def named_columns(snapshot: Snapshot) -> Iterator[tuple[str, Column]]:
    """Yield the name and the column of each class with an inventory, but not of inconsistent rows without a class."""
    for class_id, column in snapshot.columns.items():
        name = snapshot.class_names.get(class_id)
        if name is not None and column.has_inventories:
            yield name, column


_S = usage_samples.c
