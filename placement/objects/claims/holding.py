"""Consumers with their allocations: the record, and the join that reads it."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import sqlalchemy as sa

from placement.db import batches
from placement.db.engine.compiled import CompiledStatement
from placement.db.schema.tables import (
    LEASE_HAS_EXPIRED,
    allocations,
    claims,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    users,
)
from placement.db.writes.transaction import Reading, Transaction
from placement.objects.consumer import Owner
from placement.objects.provider import GENERATION
from placement.objects.usage import UNKNOWN_TYPE
from placement.uuids import spellings

#: The uuids of the providers that serve a group, by its suffix, for each copy of the request.
Mappings = Sequence[Mapping[str, Sequence[str]]]


@dataclass(slots=True)
class HeldAmounts:
    """The allocations of a consumer on one provider."""

    provider: str
    name: str | None
    #: The provider's generation.
    generation: int
    #: Amounts by class.
    resources: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Holding:
    """A consumer with all its allocations.

    Other implementations may leave rows that refer to missing rows.  So a consumer may lack a row, and with it an
    owner; an allocation of a missing provider or class appears only in ``held_on``.
    """

    uuid: str
    #: The id and the generation of its row; None without a row.
    id: int | None = None
    generation: int | None = None
    #: Project and user are None if their rows are missing.
    project: str | None = None
    user: str | None = None
    #: The consumer type; None without a type.
    type_name: str | None = None
    #: The time at which its row was inserted, if recorded (naive, UTC).
    created_at: datetime.datetime | None = None
    #: The time of the last write of its row, even by a claim that only relies on it (naive, UTC).
    updated_at: datetime.datetime | None = None
    #: The expiry of its lease, by the database's clock: naive, UTC; None without a lease.
    expires_at: datetime.datetime | None = None
    #: Whether its lease has expired, so that its allocations must be released first; None without a lease.
    is_expired: bool | None = None
    #: The digest of the claim request; None if it was not recorded, or not read.
    content: str | None = None
    #: The mappings of the claim; None like ``content``, or if the allocations have changed since the claim.
    mappings: Mappings | None = None
    #: The amounts held on each provider, by its uuid.
    held: dict[str, HeldAmounts] = field(default_factory=dict)
    #: Sums by provider uuid and class name.  Only another implementation leaves several allocations of one class on one
    #: provider; ``held`` then contains the last one, as that implementation shows it.
    amounts: dict[tuple[str, str], int] = field(default_factory=dict)
    #: Ids of the providers of its allocations.
    held_on: set[int] = field(default_factory=set)
    #: The time at which the newest allocation in ``held`` was written; only ``find`` reads it.
    modified: datetime.datetime | None = None

    @property
    def consumer_type(self) -> str:
        """The type, as APIs show it."""
        return self.type_name or UNKNOWN_TYPE

    @property
    def owner(self) -> Owner:
        """The project and user of a consumer that ``find`` returned; a claim by this owner keeps the type."""
        assert self.project is not None
        assert self.user is not None
        return Owner(self.project, self.user)

    @property
    def resources(self) -> dict[str, dict[str, int]]:
        """Amounts by provider uuid and class name."""
        return {uuid: allocation.resources for uuid, allocation in self.held.items()}

    @property
    def exists(self) -> bool:
        """Whether clients of the v1 API can see it."""
        return self.id is not None and bool(self.held_on) and not self.is_expired

    def is_unchanged_since(self, before: Holding) -> bool:
        """Whether row, expiry and allocations are the same; ``updated_at`` and provider generations do not count."""
        return self._comparison_key == before._comparison_key

    @property
    def _comparison_key(self) -> tuple[Any, ...]:
        row = self.id, self.uuid, self.generation, self.project, self.user, self.type_name
        return *row, self.created_at, self.expires_at, self.resources, bool(self.held_on)

    # --- reading ---

    @classmethod
    def find(cls, db: Reading, uuid: str) -> Self | None:
        """Return the consumer with exactly this uuid, case included, as the Placement API shows it, or None.

        The API hides a consumer without a row, a project or a user, and shows an expired one until it is released.
        """
        rows = [row for row in db.execute(_DATED, {"uuids": [uuid]}) if row.uuid == uuid]
        holding = cls.collect(rows).get(uuid)
        if holding is None or holding.project is None or holding.user is None or not holding.held:
            return None
        dates = (row.allocated_at for row in rows if row.provider is not None and row.resource_class is not None)
        holding.modified = max((date for date in dates if date is not None), default=None)
        return holding

    @classmethod
    def read_all(cls, db: Reading, uuids: Collection[str], *, with_record: bool = False) -> dict[str, Self]:
        """Return the consumers with allocations, by uuid, including those without a row or with an expired lease.

        Args:
            with_record: Whether to read ``content`` and ``mappings`` as well.
        """
        return cls._read(db, _WITH_RECORD if with_record else _HOLDING, uuids, with_record=with_record)

    @classmethod
    def lock(cls, db: Transaction, uuids: Collection[str], *, skip_locked: bool = False) -> list[Self]:
        """Lock the rows of consumers in the order of their uuids, and return the consumers with a row.

        The consumers may have no allocations.  A row that is inserted after the locks were taken is left out: it is not
        locked.

        Args:
            skip_locked: Whether to skip consumers that other transactions have locked, if the server supports it.
        """
        if not uuids:
            return []
        statement = _LOCK_SKIPPING if skip_locked and db.skips_locked_rows else _LOCK
        requested = frozenset(uuids)
        # Some collations also match a uuid in another case.
        locked = [row.uuid for row in db.execute(statement, {"uuids": sorted(requested)}) if row.uuid in requested]
        holdings = cls._read(db, _OF_ROWS, locked)
        return [holdings[uuid] for uuid in locked if uuid in holdings]

    def lock_lease(self, db: Transaction) -> None:
        """Lock the row and read the expiry again: extending a lease does not change the generation."""
        for locked in Holding.lock(db, [self.uuid]):
            self.expires_at = locked.expires_at

    @classmethod
    def collect(cls, rows: Iterable[Any], *, with_record: bool = False) -> dict[str, Self]:
        """Return the consumers in the rows of ``select_holdings``, by uuid, in the order of the rows."""
        holdings: dict[str, Self] = {}
        for row in rows:
            # By position: access by column name would take half the time of a page.
            holding = holdings.get(row[0])
            if holding is None:
                holding = holdings[row[0]] = cls._of_row(row, with_record=with_record)
            holding._add(*row[_ALLOCATION])
        return holdings

    @classmethod
    def _read(
        cls, db: Reading, statement: CompiledStatement, uuids: Collection[str], *, with_record: bool = False
    ) -> dict[str, Self]:
        requested = frozenset(uuids)
        rows = batches.rows(db, statement, "uuids", sorted(requested))
        # Some collations also match a uuid in another case.
        return cls.collect((row for row in rows if row[0] in requested), with_record=with_record)

    @classmethod
    def _of_row(cls, row: Any, *, with_record: bool) -> Self:
        holding = cls(row[0], *row[_CONSUMER])
        if with_record:
            holding.content = row.content
            if row.content and row.claim_generation == row.generation:
                holding.mappings = row.mappings
        return holding

    def _add(
        self,
        provider_id: int | None,
        provider: str | None,
        name: str | None,
        generation: int,
        resource_class: str | None,
        used: int,
    ) -> None:
        """Add the allocation of a row; the row has none if ``provider_id`` is None."""
        if provider_id is None:
            return
        self.held_on.add(provider_id)
        if provider is None or resource_class is None:
            return
        amounts = self.held.get(provider)
        if amounts is None:
            amounts = self.held[provider] = HeldAmounts(provider, name, generation)
        amounts.resources[resource_class] = used
        key = provider, resource_class
        self.amounts[key] = self.amounts.get(key, 0) + used


#: Columns of ``select_holdings``: the arguments of ``_add``, and the fields from ``id`` on.
_ALLOCATION, _CONSUMER = slice(1, 7), slice(7, 16)


def stored_uuids(db: Reading, texts: Collection[str]) -> dict[str, str]:
    """Return the stored spelling of consumer uuids, by the given text.

    Of two consumers whose uuids differ only in spelling, an exact match is preferred.  Without a row, the result is the
    canonical form.
    """
    forms_of = {text: spellings(text) for text in texts}
    rows = db.execute(_STORED, {"uuids": sorted({*itertools.chain(*forms_of.values())})})
    stored = {row.uuid for row in rows}
    in_any_case = {uuid.lower(): uuid for uuid in stored}  # some collations ignore case
    return {
        text: next((form for form in forms if form in stored), in_any_case.get(forms[-1], forms[-1]))
        for text, forms in forms_of.items()
    }


def providers_of(db: Reading, uuids: Collection[str]) -> dict[str, set[int]]:
    """Return the ids of the providers of each consumer's allocations, by consumer uuid."""
    held_on: dict[str, set[int]] = {uuid: set() for uuid in uuids}
    for row in db.execute(_HELD_ON, {"uuids": list(uuids)}):
        if row.consumer_id in held_on:  # some collations also match a uuid in another case
            held_on[row.consumer_id].add(row.resource_provider_id)
    return held_on


def select_holdings(
    consumer: sa.FromClause, *more: sa.ColumnElement[Any], by_allocation: bool = False
) -> sa.Select[Any]:
    """Return the statement that reads consumers with their allocations; one statement reads a consistent state.

    The result has a row for each allocation.  All joins are outer joins: for an inner join in a page, SQLite would read
    all allocations.

    Args:
        consumer: A table or subquery with the columns of consumers.
        more: Additional columns, for example of claims.
        by_allocation: Whether to begin with the allocations, and so include allocations whose consumer has no row.
            Otherwise begin with the consumers, and include a row for a consumer without allocations.
    """
    row = consumer.c
    holds = _A.consumer_id == row.uuid
    source = allocations.outerjoin(consumer, holds) if by_allocation else consumer
    # Joined before allocations, so that names are not looked up for each allocation.
    source = (
        source.outerjoin(projects, projects.c.id == row.project_id)
        .outerjoin(users, users.c.id == row.user_id)
        .outerjoin(consumer_types, consumer_types.c.id == row.consumer_type_id)
        .outerjoin(claims, claims.c.consumer_id == row.id)
    )
    if not by_allocation:
        source = source.outerjoin(allocations, holds)
    return sa.select(
        (_A.consumer_id if by_allocation else row.uuid).label("uuid"),
        *(_A.resource_provider_id, _P.uuid.label("provider"), _P.name, GENERATION.label("provider_generation")),
        *(resource_classes.c.name.label("resource_class"), _A.used),
        *(row.id, row.generation, projects.c.external_id.label("project"), users.c.external_id.label("user")),
        *(consumer_types.c.name.label("type_name"), row.created_at, row.updated_at, claims.c.expires_at),
        LEASE_HAS_EXPIRED.label("is_expired"),
        *more,
    ).select_from(
        source.outerjoin(resource_providers, _P.id == _A.resource_provider_id).outerjoin(
            resource_classes, resource_classes.c.id == _A.resource_class_id
        )
    )


_A, _C, _P = allocations.c, consumers.c, resource_providers.c
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_BY_UUID = sa.select(_C.uuid).where(_C.uuid.in_(_UUIDS))
_STORED = CompiledStatement(_BY_UUID)
_HELD_ON = CompiledStatement(sa.select(_A.consumer_id, _A.resource_provider_id).where(_A.consumer_id.in_(_UUIDS)))
_LOCK = CompiledStatement(_BY_UUID.order_by(_C.uuid).with_for_update())
_LOCK_SKIPPING = CompiledStatement(_BY_UUID.order_by(_C.uuid).with_for_update(skip_locked=True))


def _by_allocation(*more: sa.ColumnElement[Any]) -> CompiledStatement:
    statement = select_holdings(consumers, *more, by_allocation=True)
    return CompiledStatement(statement.where(_A.consumer_id.in_(_UUIDS)).order_by(_A.id))


_HOLDING = _by_allocation()
_DATED = _by_allocation(_A.created_at.label("allocated_at"))
_WITH_RECORD = _by_allocation(claims.c.content, claims.c.generation.label("claim_generation"), claims.c.mappings)
_OF_ROWS = CompiledStatement(select_holdings(consumers).where(_C.uuid.in_(_UUIDS)).order_by(_A.id))
