"""Who holds what: consumers with all that they hold, page by page, and how many hold something on each provider."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement.db.schema.tables import (
    allocations,
    claims,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    users,
)
from placement.db.writes.transaction import Reading
from placement.objects.usage import UNKNOWN_TYPE

#: Providers in one statement; MariaDB makes a table of a list of a thousand or more.
MANY = 999
#: Rows of an index up to which all of them are read for a page.
FEW = 10_000
#: How many consumers a page looks at otherwise.
WINDOW = 50_000


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

    @property
    def named(self) -> dict[str, str | None]:
        """The names of rows of other tables: of the project, the user and the type; None for none."""
        typed = None if self.consumer_type == UNKNOWN_TYPE else self.consumer_type
        return {"project": self.project, "user": self.user, "consumer_type": typed}


@dataclass(slots=True)
class HeldAmounts:
    """What a consumer holds on one provider."""

    provider: str
    #: That of the provider, which is nothing of the consumer's.
    name: str | None = field(compare=False)
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
    #: When its claim ends, by the clock of the database: naive, UTC; None for never.
    expires_at: datetime.datetime | None
    #: When its row was last written: naive, UTC; also by a claim that only relies on what it holds.
    updated_at: datetime.datetime | None = field(default=None, compare=False)
    #: By provider uuid.
    held: dict[str, HeldAmounts] = field(default_factory=dict)
    #: Whether it holds anything, also of a provider or a class that does not exist.
    holds: bool = False


class ConsumerPage(NamedTuple):
    """Some consumers, and where the next page begins."""

    holders: list[Holder]
    #: The id after which it begins; None if this is the last page.
    next: int | None


def page(db: Reading, wanted: ConsumerFilter, limit: int, after: int = 0) -> ConsumerPage:
    """Return consumers that hold something, in the order of their ids.

    A page may have fewer consumers than its limit, or none, and still be followed by another one.  Where an index has
    few rows with what is wanted, these are read; else so many consumers are looked at in turn, and no more.  And rows
    of consumers that hold nothing, which another implementation may leave, count as absent.

    Args:
        db: Where they are read.
        wanted: Which of them.
        limit: How many at most.
        after: Where the page begins.
    """
    # The names come first: of an id the database knows how many consumers have it, and chooses the index by that.
    ids = db.execute(_IDS, wanted.named).one()._asdict()
    # Some collations find a name in another case, and with spaces at its end.
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
    found = _read(db, conditions, limit + 1, after)
    shown = found[:limit]
    following = None if beyond is None else beyond - 1
    if len(found) > limit:
        following = shown[-1].id
    return ConsumerPage([holder for holder in shown if holder.holds], following)


def of_uuids(db: Reading, uuids: Collection[str]) -> dict[str, Holder]:
    """Return those of the consumers that have a row, by uuid."""
    found = _read(db, [_C.uuid.in_(list(uuids))], len(uuids), 0) if uuids else []
    return {holder.uuid: holder for holder in found}


def _read(db: Reading, conditions: Iterable[sa.ColumnElement[bool]], limit: int, after: int) -> list[Holder]:
    """Return consumers in the order of their ids, by one statement, so that all that one holds is of one moment."""
    found: dict[int, Holder] = {}
    for row in db.execute(_statement(conditions, limit), {"after": after}):
        holder = found.get(row.id)
        if holder is None:
            holder = found[row.id] = Holder(
                *(row.id, row.uuid, row.generation, row.project, row.user),
                *(row.consumer_type or UNKNOWN_TYPE, row.created_at, row.expires_at, row.updated_at),
            )
        holder.holds |= row.resource_class_id is not None
        if row.provider is not None and row.resource_class is not None:
            held = holder.held.setdefault(row.provider, HeldAmounts(row.provider, row.name))
            held.resources[row.resource_class] = row.used
    return [*found.values()]


def count_by_provider(db: Reading, ids: Iterable[int]) -> dict[int, int]:
    """Return how many consumers hold something on each of these providers, by its id.

    Providers on which nothing is held are left out.  A consumer has one allocation of a class on a provider.  So where
    one class is held an index has the number, for example of a pool that all consumers use.  Elsewhere all allocations
    are read, by several statements, of which none takes long (docs: performance-overview).
    """
    ordered = sorted(ids)
    counts: dict[int, int] = {}
    for start in range(0, len(ordered), MANY):
        batch = ordered[start : start + MANY]
        wanted = frozenset(batch)
        held = [row for row in db.execute(_HELD.where(_among(batch))) if row.provider in wanted]
        counts |= {row.provider: row.held for row in held if row.first == row.last}
        several = sorted(row.provider for row in held if row.first != row.last)
        if several:
            found = {row.provider: row.consumers for row in db.execute(_COUNTS.where(_among(several)))}
            counts |= {provider_id: found[provider_id] for provider_id in several if provider_id in found}
    return counts


def _among(ids: Sequence[int]) -> sa.ColumnElement[bool]:
    """Return the condition for these providers, ascending, and perhaps for others between them."""
    dense = ids[-1] - ids[0] < 2 * len(ids)
    return _PROVIDER.between(ids[0], ids[-1]) if dense else _PROVIDER.in_(ids)


_A, _C, _P = allocations.c, consumers.c, resource_providers.c
_PROVIDER = _A.resource_provider_id
_COUNTS = sa.select(_PROVIDER.label("provider"), sa.func.count(sa.distinct(_A.consumer_id)).label("consumers"))
_COUNTS = _COUNTS.group_by(_PROVIDER)
#: The number of allocations, and the least and the greatest class.
_HELD = sa.select(
    *(_PROVIDER.label("provider"), sa.func.count().label("held")),
    *(sa.func.min(_A.resource_class_id).label("first"), sa.func.max(_A.resource_class_id).label("last")),
).group_by(_PROVIDER)
_CONSUMERS = sa.select(consumers).where(_C.id > sa.bindparam("after")).order_by(_C.id)
#: The ids of the rows of names, and the names as they have them; NULL where there is none.
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
    """Return whether the statement has few rows; it is ended when it has more."""
    some = rows.limit(FEW + 1).subquery()
    return bool(db.execute(sa.select(sa.func.count()).select_from(some)).scalar_one() <= FEW)


def _held(wanted: ConsumerFilter, statement: sa.Select[Any]) -> sa.Select[Any]:
    """Return the statement about allocations, for those of the class and of the providers."""
    if wanted.resource_class is not None:
        statement = statement.where(_A.resource_class_id == wanted.resource_class)
    if wanted.providers is not None:
        statement = statement.where(_A.resource_provider_id.in_(list(wanted.providers)))
    return statement


def _statement(conditions: Iterable[sa.ColumnElement[bool]], count: int) -> sa.Select[Any]:
    """Return the statement of a page: a row for each allocation of its consumers, and one for those without.

    Names are joined to the page, and not to the table of consumers: MariaDB would begin with the projects.
    Each join is an outer one: SQLite would read all allocations for an inner join among them.
    """
    shown = _CONSUMERS.where(*conditions).limit(count).subquery("page")
    return (
        sa.select(
            *(shown.c.id, shown.c.uuid, shown.c.generation, shown.c.created_at, shown.c.updated_at),
            projects.c.external_id.label("project"),
            users.c.external_id.label("user"),
            consumer_types.c.name.label("consumer_type"),
            claims.c.expires_at,
            _P.uuid.label("provider"),
            _P.name.label("name"),
            resource_classes.c.name.label("resource_class"),
            *(_A.resource_class_id, _A.used),
        )
        .select_from(shown)
        .outerjoin(projects, projects.c.id == shown.c.project_id)
        .outerjoin(users, users.c.id == shown.c.user_id)
        .outerjoin(consumer_types, consumer_types.c.id == shown.c.consumer_type_id)
        .outerjoin(claims, claims.c.consumer_id == shown.c.id)
        .outerjoin(allocations, _A.consumer_id == shown.c.uuid)
        .outerjoin(resource_providers, _P.id == _A.resource_provider_id)
        .outerjoin(resource_classes, resource_classes.c.id == _A.resource_class_id)
        .order_by(shown.c.id, _A.id)
    )


def _owned(wanted: ConsumerFilter, ids: Mapping[str, int]) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the conditions that indexes of consumers have; ``ids`` are those of project, user and type."""
    if wanted.project is not None:
        yield _C.project_id == ids["project"]
    if wanted.user is not None:
        yield _C.user_id == ids["user"]
    if wanted.consumer_type is not None:
        yield _C.consumer_type_id == ids["consumer_type"]  # IS NULL for None
    if wanted.user is not None and wanted.project is None:
        # There is an index of projects with users, and none of users alone.
        yield _C.project_id.in_(sa.select(projects.c.id))


def _created(wanted: ConsumerFilter) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the conditions on the date, of which there is no index."""
    if wanted.created_before is not None:
        yield _C.created_at < wanted.created_before
    if wanted.created_after is not None:
        yield _C.created_at >= wanted.created_after


def _holding(wanted: ConsumerFilter, by_holding: bool) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the condition on what consumers hold, if there is one.

    Args:
        by_holding: Whether to begin with the allocations and not with the consumers.
    """
    if by_holding:
        yield _C.uuid.in_(_held(wanted, sa.select(_A.consumer_id)))
    elif wanted.providers is not None or wanted.resource_class is not None:
        # With a limit no database turns this into a join with all allocations.
        held = _held(wanted, sa.select(_A.consumer_id)).where(_A.consumer_id == _C.uuid)
        yield held.limit(1).scalar_subquery().is_not(None)
