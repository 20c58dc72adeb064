"""Pages of consumers with everything they hold, by their owners, types and dates, and by what they hold where."""

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
from placement.objects.claims.holding import Holding, joined
from placement.objects.usage import UNKNOWN_TYPE

#: If an index has at most this many rows with what is wanted, a page reads all of them.
FEW = 10_000
#: Otherwise, a page looks at this many consumers.
WINDOW = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerFilter:
    """The consumers that meet every condition; None is no condition."""

    project: str | None = None
    user: str | None = None
    #: ``unknown`` stands for consumers without a type.
    consumer_type: str | None = None
    #: Naive, UTC.
    created_before: datetime.datetime | None = None
    created_after: datetime.datetime | None = None
    #: It has a lease that has not expired and ends by this moment (naive, UTC).
    ends_by: datetime.datetime | None = None
    #: Ids of providers: the consumer holds something on one of them.
    providers: Collection[int] | None = None
    #: The id of a class that it holds; with ``providers``, on one of these.  Without them it should be a class that
    #: many consumers hold: to find the few that hold a rare one, all consumers are read.
    resource_class: int | None = None

    @property
    def named(self) -> dict[str, str | None]:
        """The names to look up in other tables, of the project, the user and the type; None for no condition."""
        typed = None if self.consumer_type == UNKNOWN_TYPE else self.consumer_type
        return {"project": self.project, "user": self.user, "consumer_type": typed}


class ConsumerPage(NamedTuple):
    """Some consumers, and where the next page begins."""

    holders: list[Holding]
    #: The id after which the next page begins; None if this is the last one.
    next: int | None


def page(db: Reading, wanted: ConsumerFilter, limit: int, after: int = 0) -> ConsumerPage:
    """Return consumers that hold something, in the order of their ids.

    A page may have fewer consumers than its limit, or none, and still not be the last.  If an index has few rows with
    what is wanted, these are read.  Otherwise the page looks at the next ``WINDOW`` consumers, and at no more.  Rows of
    consumers that hold nothing, which another implementation may leave, count as absent.

    Args:
        db: Where to read them.
        wanted: Which of them.
        limit: How many at most.
        after: The id after which the page begins.
    """
    # Names are looked up first: the database knows how many consumers have an id, and chooses the index by that.
    ids = db.execute(_IDS, wanted.named).one()._asdict()
    # Some collations also find a name in another case, or with trailing spaces.
    if any(ids[f"{kind}_found"] != name for kind, name in wanted.named.items() if name is not None):
        return ConsumerPage([], None)
    owned = [*_owned(wanted, ids)]
    by_holding = wanted.providers is not None and _are_few(db, _held(wanted, sa.select(_A.id)))
    beyond = None
    if not (by_holding or (owned and _are_few(db, sa.select(_C.id).where(*owned)))):
        beyond = db.execute(_BEYOND, {"after": after, "window": WINDOW}).scalar()
    conditions = [*owned, *_created(wanted), *_holding(wanted, by_holding)]
    if beyond is not None:
        conditions.append(_C.id < beyond)
    found = [*Holding.collect(db.execute(_statement(conditions, limit + 1), {"after": after})).values()]
    shown = found[:limit]
    following = None if beyond is None else beyond - 1
    if len(found) > limit:
        following = shown[-1].id
    return ConsumerPage([holder for holder in shown if holder.held_on], following)


_A, _C = allocations.c, consumers.c
_CONSUMERS = sa.select(consumers).where(_C.id > sa.bindparam("after")).order_by(_C.id)
#: The ids of the rows of names, and the names as stored; NULL if there is no row.
_IDS = sa.select(
    *(
        sa.select(wanted).where(column == sa.bindparam(name)).scalar_subquery().label(label)
        for name, column in (
            ("project", projects.c.external_id),
            ("user", users.c.external_id),
            ("consumer_type", consumer_types.c.name),
        )
        for label, wanted in ((name, column.table.c.id), (f"{name}_found", column))
    )
)
#: The id of the first consumer that a page does not look at.
_BEYOND = sa.select(_C.id).where(_C.id > sa.bindparam("after")).order_by(_C.id)
_BEYOND = _BEYOND.offset(sa.bindparam("window")).limit(1)


def _are_few(db: Reading, rows: sa.Select[Any]) -> bool:
    """Return whether the statement has few rows; it stops once there are more."""
    some = rows.limit(FEW + 1).subquery()
    return bool(db.execute(sa.select(sa.func.count()).select_from(some)).scalar_one() <= FEW)


def _held(wanted: ConsumerFilter, statement: sa.Select[Any]) -> sa.Select[Any]:
    """Return the statement about allocations, limited to the class and the providers that are wanted."""
    if wanted.resource_class is not None:
        statement = statement.where(_A.resource_class_id == wanted.resource_class)
    if wanted.providers is not None:
        statement = statement.where(_A.resource_provider_id.in_(list(wanted.providers)))
    return statement


def _statement(conditions: Iterable[sa.ColumnElement[bool]], count: int) -> sa.Select[Any]:
    """Return the statement of a page.

    Names are joined to the page rather than to the table of consumers: MariaDB would begin with the projects.
    """
    shown = _CONSUMERS.where(*conditions).limit(count).subquery("page")
    return joined(shown).order_by(shown.c.id, _A.id)


def _owned(wanted: ConsumerFilter, ids: Mapping[str, int]) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the conditions for which consumers have an index; ``ids`` are those of project, user and type."""
    if wanted.project is not None:
        yield _C.project_id == ids["project"]
    if wanted.user is not None:
        yield _C.user_id == ids["user"]
    if wanted.consumer_type is not None:
        yield _C.consumer_type_id == ids["consumer_type"]  # IS NULL for None
    if wanted.user is not None and wanted.project is None:
        # There is an index of projects with users, but none of users alone.
        yield _C.project_id.in_(sa.select(projects.c.id))
    if wanted.ends_by is not None:
        soon = sa.select(claims.c.consumer_id).where(claims.c.expires_at <= wanted.ends_by)
        yield _C.id.in_(soon.where(sa.not_(LEASE_HAS_EXPIRED)))


def _created(wanted: ConsumerFilter) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the conditions on the date, which has no index."""
    if wanted.created_before is not None:
        yield _C.created_at < wanted.created_before
    if wanted.created_after is not None:
        yield _C.created_at >= wanted.created_after


def _holding(wanted: ConsumerFilter, by_holding: bool) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the condition on what consumers hold, if there is one.

    Args:
        by_holding: Whether to begin with the allocations rather than with the consumers.
    """
    if by_holding:
        yield _C.uuid.in_(_held(wanted, sa.select(_A.consumer_id)))
    elif wanted.providers is not None or wanted.resource_class is not None:
        # The limit keeps every database from turning this into a join with all allocations.
        held = _held(wanted, sa.select(_A.consumer_id)).where(_A.consumer_id == _C.uuid)
        yield held.limit(1).scalar_subquery().is_not(None)
