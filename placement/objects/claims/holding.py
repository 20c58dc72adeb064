"""What consumers hold: the one record for it, and the one join that reads it."""

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

#: For each copy, the uuids of the providers that serve each group, by its suffix.
Mappings = Sequence[Mapping[str, Sequence[str]]]
#: Consumers in one statement.
_MANY = 1000


@dataclass(slots=True)
class HeldAmounts:
    """What a consumer holds on one provider."""

    provider: str
    name: str | None
    #: The provider's.
    generation: int
    #: Amounts by class.
    resources: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Holding:
    """A consumer with everything that it holds.

    Other implementations may leave rows that refer to missing rows.  So a consumer may have no row, and then has no
    owner either; and a provider or class that does not exist shows only in ``held_on``.
    """

    uuid: str
    #: The id and generation of its row; None: it has no row.
    id: int | None = None
    generation: int | None = None
    #: Project and user are None if their rows are missing.
    project: str | None = None
    user: str | None = None
    #: None: it has no type.
    type_name: str | None = None
    #: Since when it holds something, if that was recorded: naive, UTC.
    created_at: datetime.datetime | None = None
    #: When its row was last written, even by a claim that only relies on what it holds: naive, UTC.
    updated_at: datetime.datetime | None = None
    #: When its claim ends, by the database's clock: naive, UTC; None for never.
    expires_at: datetime.datetime | None = None
    #: Whether that time is over, so that what it holds must first be given back; None for never.
    is_expired: bool | None = None
    #: The digest of the request that was claimed; None if it was not recorded, or not read.
    content: str | None = None
    #: None also if something else has since changed what the consumer holds.
    mappings: Mappings | None = None
    #: By provider uuid.
    held: dict[str, HeldAmounts] = field(default_factory=dict)
    #: Sums by provider uuid and class name.  Only another implementation leaves several allocations of one class on one
    #: provider; then ``held`` has the last of them, as that implementation's API shows it.
    amounts: dict[tuple[str, str], int] = field(default_factory=dict)
    #: Ids of the providers of all its allocations.
    held_on: set[int] = field(default_factory=set)
    #: When the newest allocation in ``held`` was written; only ``find`` reads it.
    modified: datetime.datetime | None = None

    @property
    def consumer_type(self) -> str:
        """The type, as APIs show it."""
        return self.type_name or UNKNOWN_TYPE

    @property
    def owner(self) -> Owner:
        """The owner of a consumer that ``find`` returned; as an owner to write, it keeps the type."""
        assert self.project is not None
        assert self.user is not None
        return Owner(self.project, self.user)

    @property
    def resources(self) -> dict[str, dict[str, int]]:
        """Amounts by provider uuid and class name."""
        return {uuid: held.resources for uuid, held in self.held.items()}

    @property
    def exists(self) -> bool:
        """Whether clients of /v1 can see it."""
        return self.id is not None and bool(self.held_on) and not self.is_expired

    def is_what_it_was(self, before: Holding) -> bool:
        """Return whether the consumer has not changed, apart from the date of its row and from its providers."""
        return self._compared == before._compared

    @property
    def _compared(self) -> tuple[Any, ...]:
        row = self.id, self.uuid, self.generation, self.project, self.user, self.type_name
        return *row, self.created_at, self.expires_at, self.resources, bool(self.held_on)

    # --- reading ---

    @classmethod
    def find(cls, db: Reading, uuid: str) -> Self | None:
        """Return what the Placement API shows of the consumer with exactly this uuid, case included; None for nothing.

        It shows no consumer without a row, a project or a user.  It shows one whose lease is over until that is ended.
        """
        rows = [row for row in db.execute(_DATED, {"uuids": [uuid]}) if row.uuid == uuid]
        holding = cls.collect(rows).get(uuid)
        if holding is None or holding.project is None or holding.user is None or not holding.held:
            return None
        shown = (row.allocated_at for row in rows if row.provider is not None and row.resource_class is not None)
        holding.modified = max((date for date in shown if date is not None), default=None)
        return holding

    @classmethod
    def read_all(cls, db: Reading, uuids: Collection[str], *, with_record: bool = False) -> dict[str, Self]:
        """Return the consumers that hold something, by uuid, even without a row or with an expired lease.

        Args:
            with_record: Whether to read what the claim has recorded as well: ``content`` and ``mappings``.
        """
        return cls._read(db, _WITH_RECORD if with_record else _HOLDING, uuids, with_record=with_record)

    @classmethod
    def lock(cls, db: Transaction, uuids: Collection[str], *, skip_locked: bool = False) -> list[Self]:
        """Lock the rows of consumers in the order of their uuids, and return those that have one.

        They may hold nothing.  A row that is inserted after the locks are taken is left out: others may change it.

        Args:
            skip_locked: Whether to leave out consumers that other transactions have locked, if the server can do so.
        """
        if not uuids:
            return []
        statement = _LOCK_FREE if skip_locked and db.skips_locked_rows else _LOCK
        wanted = frozenset(uuids)
        # Some collations also find a uuid in another case.
        locked = [row.uuid for row in db.execute(statement, {"uuids": sorted(wanted)}) if row.uuid in wanted]
        found = cls._read(db, _OF_ROWS, locked)
        return [found[uuid] for uuid in locked if uuid in found]

    def lock_lease(self, db: Transaction) -> None:
        """Lock the row, and read the end of the lease again: extending a lease does not change the generation."""
        for locked in Holding.lock(db, [self.uuid]):
            self.expires_at = locked.expires_at

    @classmethod
    def collect(cls, rows: Iterable[Any], *, with_record: bool = False) -> dict[str, Self]:
        """Return the consumers in the rows of ``joined``, by uuid, in the order of the rows."""
        found: dict[str, Self] = {}
        for row in rows:
            # By position: access by column name would take half the time of a page.
            holding = found.get(row[0])
            if holding is None:
                holding = found[row[0]] = cls._of_row(row, with_record=with_record)
            holding._add(*row[_ALLOCATION])
        return found

    @classmethod
    def _read(
        cls, db: Reading, statement: CompiledStatement, uuids: Collection[str], *, with_record: bool = False
    ) -> dict[str, Self]:
        wanted = frozenset(uuids)
        rows = batches.rows(db, statement, "uuids", sorted(wanted), _MANY)
        # Some collations also find a uuid in another case.
        return cls.collect((row for row in rows if row[0] in wanted), with_record=with_record)

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
        """Add an allocation; if ``provider_id`` is None, the row has none."""
        if provider_id is None:
            return
        self.held_on.add(provider_id)
        if provider is None or resource_class is None:
            return
        held = self.held.get(provider)
        if held is None:
            held = self.held[provider] = HeldAmounts(provider, name, generation)
        held.resources[resource_class] = used
        key = provider, resource_class
        self.amounts[key] = self.amounts.get(key, 0) + used


#: Where the columns of ``joined`` are: those for ``_add``, and those for the fields from ``id`` on.
_ALLOCATION, _CONSUMER = slice(1, 7), slice(7, 16)


def stored_uuids(db: Reading, texts: Collection[str]) -> dict[str, str]:
    """Return, for each text that spells the uuid of a consumer, that uuid in the form in which its row has it.

    Of two consumers whose uuids differ only in spelling, the one spelled exactly like the text is preferred.  Without
    a row, it is the canonical form.
    """
    wanted = {text: spellings(text) for text in texts}
    rows = db.execute(_STORED, {"uuids": sorted({*itertools.chain(*wanted.values())})})
    stored = {row.uuid for row in rows}
    in_any_case = {uuid.lower(): uuid for uuid in stored}  # some collations ignore case
    return {
        text: next((each for each in forms if each in stored), in_any_case.get(forms[-1], forms[-1]))
        for text, forms in wanted.items()
    }


def providers_of(db: Reading, uuids: Collection[str]) -> dict[str, set[int]]:
    """Return the ids of the providers on which each of these consumers holds something."""
    found: dict[str, set[int]] = {uuid: set() for uuid in uuids}
    for row in db.execute(_HELD_ON, {"uuids": list(uuids)}):
        if row.consumer_id in found:  # some collations also find a uuid in another case
            found[row.consumer_id].add(row.resource_provider_id)
    return found


def joined(consumer: sa.FromClause, *more: sa.ColumnElement[Any], by_allocation: bool = False) -> sa.Select[Any]:
    """Return the one statement that reads consumers with what they hold, so that all of it is of one moment.

    The result has a row for each allocation.  All joins are outer joins: for an inner join in a page, SQLite would read
    all allocations.

    Args:
        consumer: Anything with the columns of the table of consumers.
        more: Further columns, which may be those of claims.
        by_allocation: Whether to begin with the allocations, including those whose consumer has no row.  Otherwise it
            begins with the consumers, and one without an allocation has a row, too.
    """
    row = consumer.c
    holds = _A.consumer_id == row.uuid
    found = allocations.outerjoin(consumer, holds) if by_allocation else consumer
    # If allocations come second, these joins precede them: otherwise names would be looked up for each allocation.
    found = (
        found.outerjoin(projects, projects.c.id == row.project_id)
        .outerjoin(users, users.c.id == row.user_id)
        .outerjoin(consumer_types, consumer_types.c.id == row.consumer_type_id)
        .outerjoin(claims, claims.c.consumer_id == row.id)
    )
    if not by_allocation:
        found = found.outerjoin(allocations, holds)
    return sa.select(
        (_A.consumer_id if by_allocation else row.uuid).label("uuid"),
        *(_A.resource_provider_id, _P.uuid.label("provider"), _P.name, GENERATION.label("provider_generation")),
        *(resource_classes.c.name.label("resource_class"), _A.used),
        *(row.id, row.generation, projects.c.external_id.label("project"), users.c.external_id.label("user")),
        *(consumer_types.c.name.label("type_name"), row.created_at, row.updated_at, claims.c.expires_at),
        LEASE_HAS_EXPIRED.label("is_expired"),
        *more,
    ).select_from(
        found.outerjoin(resource_providers, _P.id == _A.resource_provider_id).outerjoin(
            resource_classes, resource_classes.c.id == _A.resource_class_id
        )
    )


_A, _C, _P = allocations.c, consumers.c, resource_providers.c
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_NAMED = sa.select(_C.uuid).where(_C.uuid.in_(_UUIDS))
_STORED = CompiledStatement(_NAMED)
_HELD_ON = CompiledStatement(sa.select(_A.consumer_id, _A.resource_provider_id).where(_A.consumer_id.in_(_UUIDS)))
_LOCK = CompiledStatement(_NAMED.order_by(_C.uuid).with_for_update())
_LOCK_FREE = CompiledStatement(_NAMED.order_by(_C.uuid).with_for_update(skip_locked=True))


def _by_allocation(*more: sa.ColumnElement[Any]) -> CompiledStatement:
    statement = joined(consumers, *more, by_allocation=True)
    return CompiledStatement(statement.where(_A.consumer_id.in_(_UUIDS)).order_by(_A.id))


_HOLDING = _by_allocation()
_DATED = _by_allocation(_A.created_at.label("allocated_at"))
_WITH_RECORD = _by_allocation(claims.c.content, claims.c.generation.label("claim_generation"), claims.c.mappings)
_OF_ROWS = CompiledStatement(joined(consumers).where(_C.uuid.in_(_UUIDS)).order_by(_A.id))
