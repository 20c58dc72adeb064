"""Consumers as one attempt at a claim finds and writes them: rows, generations, owners.

A consumer has a row exactly as long as it holds something.  Databases written by another implementation may have rows
of consumers that hold nothing (they count as absent, and are reused) and allocations whose consumer has no row (they
are replaced like any other).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db.engine import dialects
from placement.db.engine.compiled import CompiledInsert, CompiledStatement
from placement.db.schema.clock import CLOCK
from placement.db.schema.tables import (
    LEASE_HAS_EXPIRED,
    allocations,
    claims,
    consumers,
    resource_providers,
    touch_of,
    touched,
    utcnow,
)
from placement.db.writes import names
from placement.db.writes.names import Name
from placement.db.writes.transaction import Collision, Transaction
from placement.objects.provider import ResourceProvider
from placement.uuids import canonical

#: The most names that the statement which reads consumers looks up as well; more have statements of their own.
_FEW_NAMES = 8
#: The same for ids of providers.
_FEW_PROVIDERS = 100


def canonical_uuid(text: str) -> str:
    """Return the canonical form of the uuid of a consumer; raises MalformedConsumerUuid."""
    found = canonical(text)
    if found is None:
        raise errors.MalformedConsumerUuid(uuid=text)
    return found


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a consumer: the names of its project, its user and its consumer type."""

    project: str
    user: str
    #: None leaves the type of an existing consumer as it is.
    consumer_type: str | None = None

    @property
    def names(self) -> list[Name]:
        """The names to look up."""
        both = [Name(names.PROJECT, self.project), Name(names.USER, self.user)]
        return both if self.consumer_type is None else [*both, Name(names.CONSUMER_TYPE, self.consumer_type)]

    def columns(self, ids: Mapping[Name, int]) -> dict[str, int | None]:
        """Return the columns of a consumer's row that refer to this owner."""
        project, user, *types = (ids[name] for name in self.names)
        # A type without a row has the id 0 until the attempt runs again; the foreign key accepts null, but not 0.
        return {"project_id": project, "user_id": user, "consumer_type_id": types[0] or None if types else None}


#: The owner in a row that the same transaction deletes again.
_NO_OWNER: dict[str, int | None] = {"project_id": 0, "user_id": 0, "consumer_type_id": None}


@dataclass(slots=True)
class Consumer:
    """The row of a consumer, as an attempt found it and writes it."""

    uuid: str
    #: None while it has no row.
    id: int | None = None
    #: The generation of the row that was found.
    generation: int | None = None
    #: Whether it has allocations, even without a row.
    holds: bool = False
    #: Whether its lease is over, so that what it holds must first be given back.
    is_expired: bool = False
    #: The columns for the owner that it will have.
    columns: dict[str, int | None] = field(default_factory=dict)
    #: The names of that owner that have no row: an attempt that writes the consumer has to require them.
    missing_names: list[Name] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        """Whether it had no row when it was read."""
        return self.generation is None

    @property
    def next_generation(self) -> int:
        """The generation that a claim gives it."""
        return 1 if self.generation is None else self.generation + 1

    def check_generation(self, given: int | None) -> None:
        """Raise ConsumerGenerationConflict unless the client states the current generation (None: no such consumer).

        Its lease must not be over.
        """
        exists = not self.is_new and self.holds
        if exists and given != self.generation:
            raise errors.ConsumerGenerationConflict(expected=self.generation, given=given)
        # The row of a consumer that holds nothing is invisible, but a client that states its generation may use it.
        if not exists and given is not None and given != self.generation:
            raise errors.ConsumerGenerationConflict(expected="null", given=given)

    # --- reading ---

    @classmethod
    def read_for_claims(
        cls, db: Transaction, owners: Mapping[str, Owner | None], providers: Collection[str]
    ) -> tuple[dict[str, Consumer], dict[str, int]]:
        """Read what claims begin with, in one statement unless there are many names or providers.

        Args:
            owners: The owners to write, by consumer uuid; None leaves an owner as it is.
            providers: Uuids of providers.

        Returns:
            A consumer for each uuid, even if absent; and the ids of the providers that exist, by uuid.
        """
        wanted = list(dict.fromkeys(itertools.chain.from_iterable(owner.names for owner in owners.values() if owner)))
        if len(wanted) <= _FEW_NAMES and len(providers) <= _FEW_PROVIDERS:
            statement = _read(tuple(name.kind for name in wanted), with_providers=bool(providers))
            facts: dict[str, Any] = {"uuids": list(owners), **names.parameters(wanted)}
            if providers:
                facts["providers"] = list(providers)
            rows = list(db.execute(statement, facts))
            found = cls._collected(owners, rows)
            known = {wanted[row.number]: row.id for row in rows if row.number >= 0}
            provider_ids = {
                row.provider: row.id for row in rows if row.number == _PROVIDER and row.provider in providers
            }
        else:
            found = cls._collected(owners, db.execute(_read(), {"uuids": list(owners)}))
            known = names.find(db, wanted)
            provider_ids = ResourceProvider.ids(db, providers)
        ids = names.with_placeholder_ids(wanted, known)
        for uuid, owner in owners.items():
            if owner:
                found[uuid].columns = owner.columns(ids)
                found[uuid].missing_names = [name for name in owner.names if name not in known]
        return found, provider_ids

    @classmethod
    def _collected(cls, uuids: Iterable[str], rows: Iterable[Any]) -> dict[str, Consumer]:
        found = {uuid: cls(uuid) for uuid in uuids}
        for row in rows:
            consumer = found.get(row.uuid)
            if consumer is None:
                continue  # the row of a name or a provider, or a uuid in another case, which some collations match
            if row.id is not None:
                consumer.id, consumer.generation = row.id, row.generation
                consumer.is_expired = bool(row.is_expired)
            consumer.holds = bool(row.holds)
        return found

    # --- writing ---

    @staticmethod
    def create_and_lock(db: Transaction, uuids: Collection[str]) -> None:
        """Create a row for each uuid that has none, and lock the rows until the transaction ends."""
        # An upsert: other transactions may create and delete the row at any time, so looking first would not help.
        lock = dialects.upsert(db.dialect, consumers.c.uuid, generation=consumers.c.generation)
        new = {"project_id": 0, "user_id": 0, "generation": 0}
        db.execute(lock, [{"uuid": uuid, **new} for uuid in sorted(uuids)])

    @staticmethod
    def insert_all(db: Transaction, new: Collection[Consumer]) -> None:
        """Insert rows for new consumers.  They collide with rows that another transaction has inserted since."""
        rows = [{"uuid": consumer.uuid, "generation": 1, **consumer.columns} for consumer in new]
        ids = db.insert(_INSERT, rows, key="uuid")
        for consumer in new:
            consumer.id = ids[consumer.uuid]

    @staticmethod
    def delete_new(db: Transaction, uuids: Collection[str]) -> None:
        """Delete rows that this transaction has inserted."""
        if uuids:
            db.execute(_DELETE_BY_UUIDS, {"uuids": list(uuids)})

    @classmethod
    def lock_named(cls, db: Transaction, uuids: Collection[str]) -> None:
        """Lock rows that this transaction relies on, and write them; create a row for each uuid that has none.

        They are written because between Galera nodes a lock excludes nothing (docs/adr/0012).
        """
        cls.create_and_lock(db, uuids)
        db.execute(_TOUCH, {"uuids": list(uuids), **touched()})

    @staticmethod
    def delete_created(db: Transaction, uuids: Collection[str]) -> None:
        """Delete the locked rows that were created only to be locked: these have the project id 0, as no other row."""
        if uuids:
            db.execute(_DELETE_CREATED, {"uuids": list(uuids)})

    def lock_as_read(self, db: Transaction) -> None:
        """Lock the row until the transaction ends.

        Raises:
            Collision: Another transaction has changed or deleted the row since it was read.
        """
        if db.execute(_LOCK, {"id_": self.id}).scalar() != self.generation:
            raise Collision

    def advance(self, db: Transaction) -> None:
        """Advance the row by one generation, and give it its new owner.

        Raises:
            Collision: Another transaction has changed or deleted the row since it was read.
        """
        new = {f"new_{name}": value for name, value in self.columns.items()}
        self._write(db, _ADVANCE, {**new, "now": utcnow()})

    def delete(self, db: Transaction) -> None:
        """Delete the row, if there is one; raises like ``advance``."""
        if not self.is_new:
            self._write(db, _DELETE, {})
        elif self.holds:
            # Inserting and deleting a row keeps others from inserting one, and so from claiming, until we commit.
            self.columns = _NO_OWNER
            self.insert_all(db, [self])
            self.delete_new(db, [self.uuid])

    def _write(self, db: Transaction, statement: CompiledStatement, values: dict[str, Any]) -> None:
        if db.execute(statement, {"id_": self.id, "was": self.generation, **values}).rowcount != 1:
            raise Collision


_NEW_TYPE: sa.BindParameter[Any] = sa.bindparam("new_consumer_type_id", type_=sa.Integer)
_AS_READ = consumers.c.id == sa.bindparam("id_"), consumers.c.generation == sa.bindparam("was")
_ADVANCEMENT = (
    sa.update(consumers)
    .where(*_AS_READ)
    .values(
        generation=consumers.c.generation + 1,
        project_id=sa.bindparam("new_project_id"),
        user_id=sa.bindparam("new_user_id"),
        consumer_type_id=sa.func.coalesce(_NEW_TYPE, consumers.c.consumer_type_id),
        updated_at=sa.bindparam("now"),
    )
)
_ADVANCE = CompiledStatement(_ADVANCEMENT)
_DELETE = CompiledStatement(sa.delete(consumers).where(*_AS_READ))
_COLUMNS = "uuid", "project_id", "user_id", "generation", "consumer_type_id"
_INSERT = CompiledInsert(consumers, *_COLUMNS, created_at=CLOCK)
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_TOUCH = sa.update(consumers).where(consumers.c.uuid.in_(_UUIDS)).values(updated_at=touch_of(consumers))
_DELETE_THESE = sa.delete(consumers).where(consumers.c.uuid.in_(_UUIDS))
_DELETE_BY_UUIDS = CompiledStatement(_DELETE_THESE)
_LOCK = sa.select(consumers.c.generation).where(consumers.c.id == sa.bindparam("id_")).with_for_update(key_share=True)
_DELETE_CREATED = _DELETE_THESE.where(consumers.c.project_id == 0, consumers.c.generation == 0)
#: In rows of consumers and of providers, these stand in place of the number of a name.
_CONSUMER, _PROVIDER = -1, -2


def _number(number: int) -> sa.ColumnElement[int]:
    return sa.literal_column(str(number)).label("number")


_IS_OF_ROW = allocations.c.consumer_id == consumers.c.uuid
_WITH_ROW = (
    sa.select(
        _number(_CONSUMER),
        consumers.c.id.label("id"),
        consumers.c.uuid.label("uuid"),
        consumers.c.generation.label("generation"),
        sa.exists().where(_IS_OF_ROW).label("holds"),
        sa.null().label("provider"),
        LEASE_HAS_EXPIRED.label("is_expired"),
    )
    .select_from(consumers)
    .outerjoin(claims, claims.c.consumer_id == consumers.c.id)
    .where(consumers.c.uuid.in_(_UUIDS))
)
_WITHOUT_ROW = sa.select(
    *(_number(_CONSUMER), sa.null(), allocations.c.consumer_id, sa.null(), sa.true(), *[sa.null()] * 2)
).where(allocations.c.consumer_id.in_(_UUIDS), ~sa.exists().where(_IS_OF_ROW))
# In a column of its own: uuid columns may have different collations.
_PROVIDERS = sa.select(
    _number(_PROVIDER), resource_providers.c.id, *[sa.null()] * 3, resource_providers.c.uuid, sa.null()
).where(resource_providers.c.uuid.in_(sa.bindparam("providers", expanding=True)))


@functools.lru_cache
def _read(kinds: tuple[str, ...] = (), *, with_providers: bool = False) -> CompiledStatement:
    """Return the statement that reads consumers, with and without a row, and ids of names of these kinds.

    It is one statement, so that everything it reads is of one moment.
    """
    named = [names.lookup(kind, number).add_columns(*[sa.null()] * 5) for number, kind in enumerate(kinds)]
    found = [_PROVIDERS] if with_providers else []
    return CompiledStatement(sa.union_all(_WITH_ROW, _WITHOUT_ROW, *named, *found))
