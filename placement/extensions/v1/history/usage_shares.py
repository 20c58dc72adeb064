"""Usage shares: how much of each class the largest projects and aggregates use, taken together with each sample.

A provider is in the aggregates of its own and in those of its root, as for ``member_of`` (docs: api-sharing).  One that
is in several aggregates counts in each of them.
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
from placement.extensions.v1.history.usage_samples import EQUAL, UsageSample, capacity_of, is_of, moments_between

#: How many projects, and how many aggregates, a sample has of each class.
KEPT = 20


class Dimension(StrEnum):
    """By what the usage is divided."""

    PROJECT = "project"
    AGGREGATE = "aggregate"


@dataclass(frozen=True, slots=True)
class UsageShare:
    """What one project, or the providers of one aggregate, used of a resource class, in its units."""

    #: The project, or the uuid of the aggregate.
    name: str
    #: Naive, UTC.
    at: datetime.datetime
    used: int
    #: What the providers of the aggregate had; None for a project.
    capacity: int | None = None


#: Shares by class and then by name, each in the order of time; the largest at the last moment first.
Shares = dict[str, dict[str, list[UsageShare]]]


#: Rows that one request reads at most, about.
_MOST_ROWS = 40_000


def affordable(most: int, classes: int) -> int:
    """Return how many moments of several classes one request reads: fewer of many classes.

    Args:
        most: How many it asks for.
        classes: The number of classes that have a sample.
    """
    return min(most, max(2, _MOST_ROWS // (KEPT * max(classes, 1))))


def between(
    db: Reading,
    dimension: Dimension,
    since: datetime.datetime,
    until: datetime.datetime,
    most: int,
    resource_class: str | None = None,
) -> Shares:
    """Return the shares of a period at the moments of ``UsageSample.between``, which has the same arguments."""
    shown = moments_between(db, since, until, most, resource_class)
    rows = db.execute(
        sa.select(_S.resource_class, _S.name, _S.at, _S.used, _S.capacity)
        .where(_S.at.in_(shown), _S.dimension == dimension, is_of(_S.resource_class, resource_class))
        .order_by(_S.resource_class, _S.at.desc(), _S.place)
    )
    found: Shares = {}
    for row in rows:
        share = UsageShare(row.name, row.at, row.used, row.capacity)
        found.setdefault(row.resource_class, {}).setdefault(row.name, []).append(share)
    for shares in found.values():
        for each in shares.values():
            each.reverse()
    return found


# --- the present -----------------------------------------------------------------------------------------------------


def present_rows(db: Reading, at: datetime.datetime) -> list[Mapping[str, Any]]:
    """Return the rows of the shares of a sample of the present usage."""
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
        for dimension, found in ((Dimension.PROJECT, _by_project(db, at)), (Dimension.AGGREGATE, _by_aggregate(db, at)))
        for resource_class, shares in found.items()
        for place, share in enumerate(heapq.nsmallest(KEPT, shares, key=_largest_first))
    ]


def _largest_first(share: UsageShare) -> tuple[int, int, str]:
    return -share.used, -(share.capacity or 0), share.name


def _by_project(db: Reading, at: datetime.datetime) -> Mapping[str, list[UsageShare]]:
    found: defaultdict[str, list[UsageShare]] = defaultdict(list)
    for row in db.execute(_USED_BY_PROJECT):
        found[row.resource_class].append(UsageShare(row.name, at, int(row.used)))
    return found


def _by_aggregate(db: Reading, at: datetime.datetime) -> Mapping[str, list[UsageShare]]:
    capacities: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in db.execute(_INVENTORIES_BY_AGGREGATE):
        capacities[row.resource_class, row.name] += capacity_of(row)
    used = {(row.resource_class, row.name): int(row.used) for row in db.execute(_USED_BY_AGGREGATE)}
    found: defaultdict[str, list[UsageShare]] = defaultdict(list)
    for resource_class, name in {**capacities, **used}:
        key = resource_class, name
        sums = UsageSample.of_sums(at, capacities[key], used.get(key, 0))
        found[resource_class].append(UsageShare(name, at, sums.used, sums.capacity))
    return found


_A, _P, _S, _M = allocations.c, resource_providers.c, usage_shares.c, resource_provider_aggregates.c
_CLASS = resource_classes.c.name.label("resource_class")

# Sums are taken by ids, and named afterwards, so that no database groups by texts.
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

# Which providers are in which aggregates.
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


def _by_member(*columns: sa.ColumnElement[Any], of: sa.FromClause, group: tuple[Any, ...] = ()) -> sa.Select[Any]:
    """Return a statement with columns of inventories or sums by class and aggregate."""
    sums = (
        sa.select(of.c.resource_class_id, _MEMBERS.c.aggregate_id, *columns)
        .join_from(of, _MEMBERS, _MEMBERS.c.resource_provider_id == of.c.resource_provider_id)
        .group_by(of.c.resource_class_id, _MEMBERS.c.aggregate_id, *group)
        .subquery("by_member")
    )
    named = [column for column in sums.c if column.name not in ("resource_class_id", "aggregate_id")]
    return (
        sa.select(_CLASS, placement_aggregates.c.uuid.label("name"), *named)
        .join_from(sums, resource_classes, resource_classes.c.id == sums.c.resource_class_id)
        .join(placement_aggregates, placement_aggregates.c.id == sums.c.aggregate_id)
        .where(placement_aggregates.c.uuid.is_not(None))
    )


_USED_BY_AGGREGATE = _by_member(sa.func.sum(_PROVIDER_SUMS.c.used).label("used"), of=_PROVIDER_SUMS)
_INVENTORIES_BY_AGGREGATE = _by_member(*EQUAL, sa.func.count().label("number"), of=inventories, group=EQUAL)
