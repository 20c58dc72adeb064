"""The usage over time: samples of the past, and the present."""

from __future__ import annotations

import datetime

from placement.extensions.v1.history import usage_shares
from placement.extensions.v1.history.usage_samples import UsageSample
from placement.extensions.v1.history.usage_shares import Dimension, Shares
from placement.http.request import Request
from placement.index.snapshot import Snapshot


def over_time(
    req: Request,
    since: datetime.datetime,
    until: datetime.datetime,
    most: int,
    *,
    resource_class: str | None = None,
    present: bool = True,
) -> dict[str, list[UsageSample]]:
    """Return the samples of a period, in order, by class, the classes in the order of their names.

    Args:
        req: The request.
        since: The beginning of the period (naive, UTC).
        until: Its end, later than its beginning.
        most: As of ``UsageSample.between``.
        resource_class: The name of the only class.
        present: Whether the present usage is the last sample of each class that some provider has.
    """
    found = req.read(lambda db: UsageSample.between(db, since, until, most, resource_class))
    if present:
        for name, sample in _present(req.index.current(), resource_class, req.now()).items():
            found.setdefault(name, []).append(sample)
    return dict(sorted(found.items()))


def shares_over_time(
    req: Request,
    by: Dimension,
    since: datetime.datetime,
    until: datetime.datetime,
    most: int,
    *,
    classes: int,
    resource_class: str | None = None,
) -> Shares:
    """Return what projects or aggregates used in a period; of many classes at fewer moments, so that it is bounded.

    Args:
        req: The request.
        by: Projects or aggregates.
        since: The beginning of the period (naive, UTC).
        until: Its end, later than its beginning.
        most: As of ``UsageSample.between``.
        classes: The number of classes that have a sample.
        resource_class: The name of the only class.
    """
    most = usage_shares.timestamps_per_class(most, classes)
    return req.read(lambda db: usage_shares.between(db, by, since, until, most, resource_class))


def _present(snapshot: Snapshot, resource_class: str | None, now: datetime.datetime) -> dict[str, UsageSample]:
    """Return the present usage, as a sample would have it."""
    found = {}
    for class_id, column in snapshot.columns.items():
        name = snapshot.class_names.get(class_id)
        if name is None or resource_class not in (None, name) or not len(column.inventories().slots):
            continue
        totals = column.totals()
        found[name] = UsageSample.of_sums(now, totals.capacity, int(totals.used))
    return found
