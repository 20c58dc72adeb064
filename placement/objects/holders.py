"""Who holds what: consumers with all that they hold, page by page, and how many hold something on each provider."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from placement.db.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    users,
)
from placement.db.transaction import Reading
from placement.objects.usage import UNKNOWN_TYPE

#: Providers in one statement.
_MANY = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerFilter:
    """Which consumers: those that meet every condition; None is no condition."""

    project: str | None = None
    user: str | None = None
    #: ``unknown`` stands for consumers without a type.
    consumer_type: str | None = None
    #: Naive, UTC.
    created_before: datetime.datetime | None = None
    created_after: datetime.datetime | None = None
    #: Ids of providers, of one of which the consumer holds something.
    providers: Collection[int] | None = None
    #: The id of a class of which it holds something; with ``providers``, on one of these.  Without them it should be a
    #: class that many consumers hold: the others are found by reading all of them.
    resource_class: int | None = None


@dataclass(slots=True)
class HeldAmounts:
    """What a consumer holds on one provider."""

    provider: str
    name: str | None
    #: Amounts by class.
    resources: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Holder:
    """A consumer with all that it holds."""

    id: int
    uuid: str
    generation: int
    #: None if another implementation has left no row of the project, or of the user.
    project: str | None
    user: str | None
    consumer_type: str
    #: Since when it holds something, if that was recorded: naive, UTC.
    created_at: datetime.datetime | None
    #: By provider uuid.
    held: dict[str, HeldAmounts] = field(default_factory=dict)


def page(db: Reading, wanted: ConsumerFilter, limit: int, after: int = 0) -> tuple[list[Holder], bool]:
    """Return consumers that hold something, in the order of their ids, and whether more follow.

    It is one statement, so that all it reads is of one moment.

    Args:
        db: Where they are read.
        wanted: Which of them.
        limit: How many.
        after: The id of the last consumer of the page before.
    """
    found: dict[int, Holder] = {}
    for row in db.execute(_statement(wanted, limit + 1), {"after": after}):
        holder = found.get(row.id)
        if holder is None:
            holder = found[row.id] = Holder(
                *(row.id, row.uuid, row.generation, row.project, row.user),
                *(row.consumer_type or UNKNOWN_TYPE, row.created_at),
            )
        if row.provider is not None and row.resource_class is not None:
            held = holder.held.setdefault(row.provider, HeldAmounts(row.provider, row.name))
            held.resources[row.resource_class] = row.used
    holders = [*found.values()]
    return holders[:limit], len(holders) > limit


def count_by_provider(db: Reading, ids: Sequence[int] | None = None) -> dict[int, int]:
    """Return how many consumers hold something on each of these providers, or on each of all (None), by its id.

    Providers on which nothing is held are left out.
    """
    if ids is None:
        return dict(_counted(db.execute(_COUNTS)))
    batches = (list(ids[start : start + _MANY]) for start in range(0, len(ids), _MANY))
    return dict(pair for batch in batches for pair in _counted(db.execute(_COUNTS_OF, {"ids": batch})))


def _counted(rows: Any) -> Iterator[tuple[int, int]]:
    return ((row.provider, row.consumers) for row in rows)


_A, _C, _P = allocations.c, consumers.c, resource_providers.c
_COUNTS = sa.select(
    _A.resource_provider_id.label("provider"), sa.func.count(sa.distinct(_A.consumer_id)).label("consumers")
).group_by(_A.resource_provider_id)
_COUNTS_OF = _COUNTS.where(_A.resource_provider_id.in_(sa.bindparam("ids", expanding=True)))
_CONSUMERS = sa.select(consumers).where(_C.id > sa.bindparam("after")).order_by(_C.id)


def _statement(wanted: ConsumerFilter, count: int) -> sa.Select[Any]:
    """Return the statement of a page: a row for each allocation of its consumers.

    Names are joined to the page, and not to the table of consumers: MariaDB would begin with the projects.
    Each join is an outer one: SQLite would read all allocations for an inner join among them.
    """
    shown = _CONSUMERS.where(*_conditions(wanted)).limit(count).subquery("page")
    return (
        sa.select(
            *(shown.c.id, shown.c.uuid, shown.c.generation, shown.c.created_at),
            projects.c.external_id.label("project"),
            users.c.external_id.label("user"),
            consumer_types.c.name.label("consumer_type"),
            _P.uuid.label("provider"),
            _P.name.label("name"),
            resource_classes.c.name.label("resource_class"),
            _A.used,
        )
        .select_from(shown)
        .outerjoin(projects, projects.c.id == shown.c.project_id)
        .outerjoin(users, users.c.id == shown.c.user_id)
        .outerjoin(consumer_types, consumer_types.c.id == shown.c.consumer_type_id)
        .outerjoin(allocations, _A.consumer_id == shown.c.uuid)
        .outerjoin(resource_providers, _P.id == _A.resource_provider_id)
        .outerjoin(resource_classes, resource_classes.c.id == _A.resource_class_id)
        .order_by(shown.c.id, _A.id)
    )


def _conditions(wanted: ConsumerFilter) -> Iterator[sa.ColumnElement[bool]]:
    if wanted.project is not None:
        yield _C.project_id == _id_of(projects.c.external_id, wanted.project)
    if wanted.user is not None:
        yield _C.user_id == _id_of(users.c.external_id, wanted.user)
    if wanted.consumer_type == UNKNOWN_TYPE:
        yield _C.consumer_type_id.is_(None)
    elif wanted.consumer_type is not None:
        yield _C.consumer_type_id == _id_of(consumer_types.c.name, wanted.consumer_type)
    if wanted.created_before is not None:
        yield _C.created_at < wanted.created_before
    if wanted.created_after is not None:
        yield _C.created_at >= wanted.created_after
    if wanted.user is not None and wanted.project is None:
        # There is an index of projects with users, and none of users alone.
        yield _C.project_id.in_(sa.select(projects.c.id))
    held = sa.select(_A.consumer_id)
    if wanted.resource_class is not None:
        held = held.where(_A.resource_class_id == wanted.resource_class)
    if wanted.providers is not None:
        yield _C.uuid.in_(held.where(_A.resource_provider_id.in_(list(wanted.providers))))
    else:
        # Rows of consumers that hold nothing, which another implementation may leave, count as absent.  With a limit
        # no database turns this into a join with all allocations.
        yield held.where(_A.consumer_id == _C.uuid).limit(1).scalar_subquery().is_not(None)


def _id_of(column: sa.Column[str], name: str) -> sa.ScalarSelect[int]:
    return sa.select(column.table.c.id).where(column == name).scalar_subquery()
