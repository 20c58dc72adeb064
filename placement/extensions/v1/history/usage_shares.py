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

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from placement.db.schema.tables import allocations, consumers, projects, resource_classes
from placement.db.writes.transaction import Reading
from placement.extensions.v1.history.tables import usage_shares
from placement.extensions.v1.history.usage_samples import UsageSample, named_columns, of_class, timestamps_between
from placement.index.forest import Forest
from placement.index.slots import Slots
from placement.index.snapshot import Snapshot

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


def present_shares(
    projects: Mapping[str, list[UsageShare]], snapshot: Snapshot, at: datetime.datetime
) -> list[Mapping[str, Any]]:
    """Return the rows of the shares of a present sample.

    Args:
        projects: The shares of all projects, by class.
        snapshot: The snapshot, for the sums by aggregate.
        at: The timestamp of the sample (naive, UTC).
    """
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
            (Dimension.PROJECT, projects),
            (Dimension.AGGREGATE, _by_aggregate(snapshot, at)),
        )
        for resource_class, shares in by_class.items()
        for place, share in enumerate(heapq.nsmallest(MAX_SHARES, shares, key=_largest_first))
    ]


def _largest_first(share: UsageShare) -> tuple[int, int, str]:
    return -share.used, -(share.capacity or 0), share.name


def by_project(db: Reading, at: datetime.datetime) -> Mapping[str, list[UsageShare]]:
    """Return the present shares of all projects, by class."""
    by_class: defaultdict[str, list[UsageShare]] = defaultdict(list)
    for row in db.execute(_USED_BY_PROJECT):
        by_class[row.resource_class].append(UsageShare(row.name, at, int(row.used)))
    return by_class


def _by_aggregate(snapshot: Snapshot, at: datetime.datetime) -> Mapping[str, list[UsageShare]]:
    names, slots, numbers = _memberships(snapshot)
    by_class = {}
    for resource_class, column in named_columns(snapshot):
        inventories = column.inventories()

        def sums(amounts: npt.NDArray[np.float64]) -> list[float]:
            by_slot = _with_trees(snapshot.forest, inventories.slots, amounts)  # noqa: B023
            return np.bincount(numbers, by_slot[slots], len(names)).tolist()  # type: ignore[no-any-return]

        counts = sums(np.ones(len(inventories.slots)))
        amounts = zip(names, counts, sums(np.floor(inventories.capacity)), sums(inventories.used), strict=True)
        by_class[resource_class] = [
            UsageShare(name, at, sample.used, sample.capacity)
            for name, count, capacity, used in amounts
            if count
            for sample in (UsageSample.of_sums(at, capacity, int(used)),)
        ]
    return by_class


def _memberships(snapshot: Snapshot) -> tuple[list[str], Slots, Slots]:
    """Return the uuids of the aggregates, and pairs of a slot and the number of an aggregate.

    A root represents its whole tree, so the pairs of other providers of the tree with the same aggregate are left out.
    """
    forest = snapshot.forest
    names, sets = [*snapshot.aggregates], [members.slots() for members in snapshot.aggregates.values()]
    slots = np.concatenate([np.empty(0, np.intp), *sets])
    numbers = np.repeat(np.arange(len(sets)), [len(members) for members in sets])
    is_counted = forest.is_root[slots]
    children = np.flatnonzero(~is_counted)
    # Few aggregates contain children; only the roots in these are compared, because np.isin takes seconds for millions.
    with_children = np.zeros(len(sets), dtype=np.bool_)
    with_children[numbers[children]] = True
    roots = np.flatnonzero(is_counted & with_children[numbers])
    keys = forest.roots(slots) * len(sets) + numbers
    is_counted[children] = ~np.isin(keys[children], keys[roots])
    return names, slots[is_counted], numbers[is_counted]


def _with_trees(forest: Forest, slots: Slots, amounts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return an amount for each slot: of the whole tree for a root, of the provider itself otherwise."""
    by_slot = np.bincount(forest.roots(slots), amounts, forest.size).astype(np.float64)
    is_child = ~forest.is_root[slots]
    by_slot[slots[is_child]] = amounts[is_child]
    return by_slot


_A, _S = allocations.c, usage_shares.c

# Sums are grouped by ids and joined with names afterwards, because grouping by text is slow.
_PROJECT_SUMS = (
    sa.select(_A.resource_class_id, consumers.c.project_id, sa.func.sum(_A.used).label("used"))
    .join_from(allocations, consumers, consumers.c.uuid == _A.consumer_id)
    .group_by(_A.resource_class_id, consumers.c.project_id)
    .subquery("sums")
)
_USED_BY_PROJECT = (
    sa.select(
        resource_classes.c.name.label("resource_class"), projects.c.external_id.label("name"), _PROJECT_SUMS.c.used
    )
    .join_from(_PROJECT_SUMS, resource_classes, resource_classes.c.id == _PROJECT_SUMS.c.resource_class_id)
    .join(projects, projects.c.id == _PROJECT_SUMS.c.project_id)
)
