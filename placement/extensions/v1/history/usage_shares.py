"""Usage shares: the usage of each resource class by the largest projects and aggregates, recorded with each sample.

A provider belongs to its own aggregates and its root's aggregates, as for ``member_of`` (docs: api-sharing), and counts
in each of them.
"""

from __future__ import annotations

import datetime
import heapq
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from placement.db.schema.tables import (
    allocations,
    consumers,
    inventories,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_providers,
)
from placement.db.writes.transaction import Reading
from placement.extensions.v1.history.tables import usage_shares
from placement.extensions.v1.history.usage_samples import (
    INVENTORY_COLUMNS,
    UsageSample,
    capacity_of,
    of_class,
    timestamps_between,
)

#: Maximum number of projects, and of aggregates, that a sample records for each class.
MAX_SHARES = 20


class Dimension(StrEnum):
    """The dimension by which usage is divided."""

    PROJECT = "project"
    AGGREGATE = "aggregate"


@dataclass(frozen=True, slots=True)
class UsageShare:
    """The usage of a resource class by one project or on the providers of one aggregate, in units of the class."""

    #: The project, or the uuid of the aggregate.
    name: str
    #: Naive, UTC.
    at: datetime.datetime
    used: int
    #: The capacity of the providers of the aggregate; None for a project.
    capacity: int | None = None


#: Shares by class and name, in ascending order of time; names by usage at the last timestamp, the largest first.
Shares = dict[str, dict[str, list[UsageShare]]]

#: Approximate maximum number of rows that one request reads.
_MAX_ROWS = 40_000


def timestamps_per_class(limit: int, classes: int) -> int:
    """Return the number of timestamps to read for each class, so that the rows of a request are bounded.

    Args:
        limit: The number requested.
        classes: The number of classes with a sample.
    """
    return min(limit, max(2, _MAX_ROWS // (MAX_SHARES * max(classes, 1))))


def read_shares(
    db: Reading,
    dimension: Dimension,
    since: datetime.datetime,
    until: datetime.datetime,
    limit: int,
    resource_class: str | None = None,
) -> Shares:
    """Return the shares of a period, at the timestamps and with the arguments of ``UsageSample.read``."""
    timestamps = timestamps_between(db, since, until, limit, resource_class)
    rows = db.execute(
        sa.select(_S.resource_class, _S.name, _S.at, _S.used, _S.capacity)
        .where(_S.at.in_(timestamps), _S.dimension == dimension, of_class(_S.resource_class, resource_class))
        .order_by(_S.resource_class, _S.at.desc(), _S.place)
    )
    by_class: Shares = {}
    for row in rows:
        share = UsageShare(row.name, row.at, row.used, row.capacity)
        by_class.setdefault(row.resource_class, {}).setdefault(row.name, []).append(share)
    for by_name in by_class.values():
        for shares in by_name.values():
            shares.reverse()
    return by_class


# --- the present -----------------------------------------------------------------------------------------------------


def present_rows(db: Reading, at: datetime.datetime) -> list[Mapping[str, Any]]:
    """Return the rows of the shares of a present sample."""
    return [
        {
            "at": at,
            "dimension": dimension,
            "resource_class": resource_class,
            "place": place,
            "name": share.name,
            "capacity": share.capacity,
            "used": share.used,
        }
        for dimension, by_class in (
            (Dimension.PROJECT, _by_project(db, at)),
            (Dimension.AGGREGATE, _by_aggregate(db, at)),
        )
        for resource_class, shares in by_class.items()
        for place, share in enumerate(heapq.nsmallest(MAX_SHARES, shares, key=_largest_first))
    ]


def _largest_first(share: UsageShare) -> tuple[int, int, str]:
    return -share.used, -(share.capacity or 0), share.name


def _by_project(db: Reading, at: datetime.datetime) -> Mapping[str, list[UsageShare]]:
    by_class: defaultdict[str, list[UsageShare]] = defaultdict(list)
    for row in db.execute(_USED_BY_PROJECT):
        by_class[row.resource_class].append(UsageShare(row.name, at, int(row.used)))
    return by_class


def _by_aggregate(db: Reading, at: datetime.datetime) -> Mapping[str, list[UsageShare]]:
    capacities: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in db.execute(_INVENTORIES_BY_AGGREGATE):
        capacities[row.resource_class, row.name] += capacity_of(row)
    used = {(row.resource_class, row.name): int(row.used) for row in db.execute(_USED_BY_AGGREGATE)}
    by_class: defaultdict[str, list[UsageShare]] = defaultdict(list)
    for resource_class, name in {**capacities, **used}:
        key = resource_class, name
        sums = UsageSample.of_sums(at, capacities[key], used.get(key, 0))
        by_class[resource_class].append(UsageShare(name, at, sums.used, sums.capacity))
    return by_class


_A, _P, _S, _M = allocations.c, resource_providers.c, usage_shares.c, resource_provider_aggregates.c
_CLASS = resource_classes.c.name.label("resource_class")

# Sums are grouped by ids and joined with names afterwards, because grouping by text is slow.
_PROJECT_SUMS = (
    sa.select(_A.resource_class_id, consumers.c.project_id, sa.func.sum(_A.used).label("used"))
    .join_from(allocations, consumers, consumers.c.uuid == _A.consumer_id)
    .group_by(_A.resource_class_id, consumers.c.project_id)
    .subquery("sums")
)
_USED_BY_PROJECT = (
    sa.select(_CLASS, projects.c.external_id.label("name"), _PROJECT_SUMS.c.used)
    .join_from(_PROJECT_SUMS, resource_classes, resource_classes.c.id == _PROJECT_SUMS.c.resource_class_id)
    .join(projects, projects.c.id == _PROJECT_SUMS.c.project_id)
)

# Pairs of a provider and an aggregate.
_MEMBERS = sa.union(
    sa.select(_M.resource_provider_id, _M.aggregate_id),
    sa.select(_P.id, _M.aggregate_id).join_from(
        resource_providers, resource_provider_aggregates, _M.resource_provider_id == _P.root_provider_id
    ),
).subquery("members")
_PROVIDER_SUMS = (
    sa.select(_A.resource_provider_id, _A.resource_class_id, sa.func.sum(_A.used).label("used"))
    .group_by(_A.resource_provider_id, _A.resource_class_id)
    .subquery("sums")
)


def _by_member(*columns: sa.ColumnElement[Any], source: sa.FromClause, group: tuple[Any, ...] = ()) -> sa.Select[Any]:
    """Return a statement that groups the rows of a source by class and aggregate.

    Args:
        columns: The sums and counts to select.
        source: Inventories, or sums of allocations by provider.
        group: Further columns to group by.
    """
    sums = (
        sa.select(source.c.resource_class_id, _MEMBERS.c.aggregate_id, *columns)
        .join_from(source, _MEMBERS, _MEMBERS.c.resource_provider_id == source.c.resource_provider_id)
        .group_by(source.c.resource_class_id, _MEMBERS.c.aggregate_id, *group)
        .subquery("by_member")
    )
    named = [column for column in sums.c if column.name not in ("resource_class_id", "aggregate_id")]
    return (
        sa.select(_CLASS, placement_aggregates.c.uuid.label("name"), *named)
        .join_from(sums, resource_classes, resource_classes.c.id == sums.c.resource_class_id)
        .join(placement_aggregates, placement_aggregates.c.id == sums.c.aggregate_id)
        .where(placement_aggregates.c.uuid.is_not(None))
    )


_USED_BY_AGGREGATE = _by_member(sa.func.sum(_PROVIDER_SUMS.c.used).label("used"), source=_PROVIDER_SUMS)
_INVENTORIES_BY_AGGREGATE = _by_member(
    *INVENTORY_COLUMNS, sa.func.count().label("number"), source=inventories, group=INVENTORY_COLUMNS
)
