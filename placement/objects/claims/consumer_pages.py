"""Pages of consumers with their allocations, filtered by owner, type, date, lease, provider and resource class."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement.db.schema.tables import (
    LEASE_HAS_EXPIRED,
    allocations,
    claims,
    consumer_types,
    consumers,
    projects,
    users,
)
from placement.db.writes.transaction import Reading
from placement.objects.claims.holding import Holding, select_holdings
from placement.objects.usage import UNKNOWN_TYPE

#: Maximum number of matching index rows that a page reads in full.
MAX_INDEX_ROWS = 10_000
#: Maximum number of consumers that any other page examines.
WINDOW = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerFilter:
    """Conditions on consumers, all of which must hold; None means no condition."""

    project: str | None = None
    user: str | None = None
    #: ``unknown`` selects consumers without a type.
    consumer_type: str | None = None
    #: The bounds of the creation time (naive, UTC); ``created_after`` is inclusive.
    created_before: datetime.datetime | None = None
    created_after: datetime.datetime | None = None
    #: The consumer has an active lease that expires by this time (naive, UTC).
    expires_by: datetime.datetime | None = None
    #: Ids of providers: the consumer has an allocation on one of them.
    providers: Collection[int] | None = None
    #: The id of a class: the consumer has an allocation of it, on one of ``providers`` if they are given.  Otherwise it
    #: should be a frequent class: to find the consumers of a rare one, all consumers are read.
    resource_class: int | None = None

    @property
    def names(self) -> dict[str, str | None]:
        """The names of project, user and type to look up in other tables; None for no condition."""
        type_name = None if self.consumer_type == UNKNOWN_TYPE else self.consumer_type
        return {"project": self.project, "user": self.user, "consumer_type": type_name}


class ConsumerPage(NamedTuple):
    """Consumers, and the start of the next page."""

    holders: list[Holding]
    #: The id after which the next page begins; None if this page is the last.
    next: int | None


def page(db: Reading, consumer_filter: ConsumerFilter, limit: int, after: int = 0) -> ConsumerPage:
    """Return a page of consumers with allocations, ordered by id.

    A page that is not the last may contain fewer consumers than its limit, or be empty.  If few rows in an index match,
    the page reads them.  Otherwise it examines at most the next ``WINDOW`` consumers.  Consumers without allocations,
    whose rows another implementation may leave, count as absent.

    Args:
        limit: The maximum number of consumers.
        after: The id after which the page begins.
    """
    # Names are looked up first: from the ids, the database can estimate the matching rows and choose an index.
    ids = db.execute(_IDS, consumer_filter.names).one()._asdict()
    # Some collations also match a name in another case, or with trailing spaces.
    if any(ids[f"{kind}_stored"] != name for kind, name in consumer_filter.names.items() if name is not None):
        return ConsumerPage([], None)
    owner_conditions = [*_owner_conditions(consumer_filter, ids)]
    by_holding = consumer_filter.providers is not None and _has_few_rows(
        db, _restrict(consumer_filter, sa.select(_A.id))
    )
    window_end = None
    if not (by_holding or (owner_conditions and _has_few_rows(db, sa.select(_C.id).where(*owner_conditions)))):
        window_end = db.execute(_WINDOW_END, {"after": after, "window": WINDOW}).scalar()
    conditions = [
        *owner_conditions,
        *_creation_conditions(consumer_filter),
        *_allocation_conditions(consumer_filter, by_holding),
    ]
    if window_end is not None:
        conditions.append(_C.id < window_end)
    holders = [*Holding.collect(db.execute(_page_statement(conditions, limit + 1), {"after": after})).values()]
    examined = holders[:limit]
    next_after = None if window_end is None else window_end - 1
    if len(holders) > limit:
        next_after = examined[-1].id
    return ConsumerPage([holder for holder in examined if holder.held_on], next_after)


_A, _C = allocations.c, consumers.c
_CONSUMERS = sa.select(consumers).where(_C.id > sa.bindparam("after")).order_by(_C.id)
#: The ids of project, user and type, and their names as stored; NULL without a row.
_IDS = sa.select(
    *(
        sa.select(selected).where(column == sa.bindparam(name)).scalar_subquery().label(label)
        for name, column in (
            ("project", projects.c.external_id),
            ("user", users.c.external_id),
            ("consumer_type", consumer_types.c.name),
        )
        for label, selected in ((name, column.table.c.id), (f"{name}_stored", column))
    )
)
#: The id of the first consumer after the window of a page.
_WINDOW_END = sa.select(_C.id).where(_C.id > sa.bindparam("after")).order_by(_C.id)
_WINDOW_END = _WINDOW_END.offset(sa.bindparam("window")).limit(1)


def _has_few_rows(db: Reading, rows: sa.Select[Any]) -> bool:
    """Whether the statement returns at most ``MAX_INDEX_ROWS`` rows; counting stops at the next row."""
    counted = rows.limit(MAX_INDEX_ROWS + 1).subquery()
    return bool(db.execute(sa.select(sa.func.count()).select_from(counted)).scalar_one() <= MAX_INDEX_ROWS)


def _restrict(consumer_filter: ConsumerFilter, statement: sa.Select[Any]) -> sa.Select[Any]:
    """Return the statement about allocations, restricted to the class and the providers of the filter."""
    if consumer_filter.resource_class is not None:
        statement = statement.where(_A.resource_class_id == consumer_filter.resource_class)
    if consumer_filter.providers is not None:
        statement = statement.where(_A.resource_provider_id.in_(list(consumer_filter.providers)))
    return statement


def _page_statement(conditions: Iterable[sa.ColumnElement[bool]], count: int) -> sa.Select[Any]:
    """Return the statement of a page.

    Names are joined to the page rather than to the table of consumers, where MariaDB would begin with the projects.
    """
    rows = _CONSUMERS.where(*conditions).limit(count).subquery("page")
    return select_holdings(rows).order_by(rows.c.id, _A.id)


def _owner_conditions(consumer_filter: ConsumerFilter, ids: Mapping[str, int]) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the conditions that an index of consumers serves.

    Args:
        ids: The ids of project, user and type.
    """
    if consumer_filter.project is not None:
        yield _C.project_id == ids["project"]
    if consumer_filter.user is not None:
        yield _C.user_id == ids["user"]
    if consumer_filter.consumer_type is not None:
        yield _C.consumer_type_id == ids["consumer_type"]  # IS NULL for None
    if consumer_filter.user is not None and consumer_filter.project is None:
        # The index begins with the project.
        yield _C.project_id.in_(sa.select(projects.c.id))
    if consumer_filter.expires_by is not None:
        expiring = sa.select(claims.c.consumer_id).where(claims.c.expires_at <= consumer_filter.expires_by)
        yield _C.id.in_(expiring.where(sa.not_(LEASE_HAS_EXPIRED)))


def _creation_conditions(consumer_filter: ConsumerFilter) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the conditions on the creation date, which has no index."""
    if consumer_filter.created_before is not None:
        yield _C.created_at < consumer_filter.created_before
    if consumer_filter.created_after is not None:
        yield _C.created_at >= consumer_filter.created_after


def _allocation_conditions(consumer_filter: ConsumerFilter, by_holding: bool) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the condition on allocations, if the filter contains one.

    Args:
        by_holding: Whether to begin with the allocations rather than with the consumers.
    """
    if by_holding:
        yield _C.uuid.in_(_restrict(consumer_filter, sa.select(_A.consumer_id)))
    elif consumer_filter.providers is not None or consumer_filter.resource_class is not None:
        # The limit keeps databases from converting this into a join with all allocations.
        matches = _restrict(consumer_filter, sa.select(_A.consumer_id)).where(_A.consumer_id == _C.uuid)
        yield matches.limit(1).scalar_subquery().is_not(None)
