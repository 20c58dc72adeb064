"""Usage over time: recorded samples, followed by the present usage."""

from __future__ import annotations

import datetime

from placement.extensions.v1.history import usage_shares
from placement.extensions.v1.history.usage_samples import UsageSample, present_samples
from placement.extensions.v1.history.usage_shares import Dimension, Shares
from placement.http.request import Request


def samples_over_time(
    req: Request,
    since: datetime.datetime,
    until: datetime.datetime,
    limit: int,
    *,
    resource_class: str | None = None,
    present: bool = True,
) -> dict[str, list[UsageSample]]:
    """Return the samples of a period by class, in ascending order of time; the classes are sorted by name.

    Args:
        req: The request.
        since: The beginning of the period (naive, UTC).
        until: The end of the period, exclusive; later than the beginning.
        limit: As for ``UsageSample.read``.
        resource_class: The class of the samples; None for all classes.
        present: Whether to append the present usage of each class with an inventory.
    """
    samples = req.read(lambda db: UsageSample.read(db, since, until, limit, resource_class))
    if present:
        for name, sample in present_samples(req.index.current(), req.now()).items():
            if resource_class in (None, name):
                samples.setdefault(name, []).append(sample)
    return dict(sorted(samples.items()))


def shares_over_time(
    req: Request,
    by: Dimension,
    since: datetime.datetime,
    until: datetime.datetime,
    limit: int,
    *,
    classes: int,
    resource_class: str | None = None,
) -> Shares:
    """Return the usage by projects or aggregates in a period.

    The more classes, the fewer timestamps of each, so that the size of the result is bounded.

    Args:
        req: The request.
        by: Projects or aggregates.
        since: The beginning of the period (naive, UTC).
        until: The end of the period, exclusive; later than the beginning.
        limit: As for ``UsageSample.read``.
        classes: The number of classes with a sample.
        resource_class: The class of the shares; None for all classes.
    """
    limit = usage_shares.timestamps_per_class(limit, classes)
    return req.read(lambda db: usage_shares.read_shares(db, by, since, until, limit, resource_class))
