"""Rows of consumers, as one attempt at a claim reads and writes them: generations and owners.

A consumer has a row exactly as long as it has allocations.  A database written by another implementation may contain
consumers without allocations, which count as absent and are reused.  It may also contain allocations whose consumer has
no row, which are replaced like all other allocations.
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
    touch_parameters,
    touch_value,
    utcnow,
)
from placement.db.writes import names
from placement.db.writes.names import Name
from placement.db.writes.transaction import Collision, Transaction
from placement.objects.provider import ResourceProvider
from placement.uuids import canonical

#: Maximum numbers of names and of providers in the statement for the consumers; more take separate statements.
_MAX_NAMES, _MAX_PROVIDERS = 8, 100


def canonical_uuid(text: str) -> str:
    """Return the canonical form of the uuid of a consumer; raise MalformedConsumerUuid if the text is not a uuid."""
    uuid = canonical(text)
    if uuid is None:
        raise errors.MalformedConsumerUuid(uuid=text)
    return uuid


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a consumer: the names of its project, its user and its consumer type."""

    project: str
    user: str
    #: The consumer type; None keeps the type of an existing consumer.
    consumer_type: str | None = None

    @property
    def names(self) -> list[Name]:
        """The names to look up."""
        owner = [Name(names.PROJECT, self.project), Name(names.USER, self.user)]
        return owner if self.consumer_type is None else [*owner, Name(names.CONSUMER_TYPE, self.consumer_type)]

    def columns(self, ids: Mapping[Name, int]) -> dict[str, int | None]:
        """Return the columns of a consumer's row that refer to this owner."""
        project, user, *types = (ids[name] for name in self.names)
        # A type without a row has the id 0 until the attempt is retried; the foreign key accepts NULL, but not 0.
        return {"project_id": project, "user_id": user, "consumer_type_id": types[0] or None if types else None}


#: The owner columns of a row that the same transaction deletes.
_NO_OWNER: dict[str, int | None] = {"project_id": 0, "user_id": 0, "consumer_type_id": None}


@dataclass(slots=True)
class Consumer:
    """A consumer as an attempt reads it and writes it."""

    uuid: str
    #: The id of the row; None without a row.
    id: int | None = None
    #: The generation of the row, as read.
    generation: int | None = None
    #: Whether it has allocations, with or without a row.
    holds: bool = False
    #: Whether its lease has expired: its allocations must be released first.
    is_expired: bool = False
    #: The columns of the new owner.
    columns: dict[str, int | None] = field(default_factory=dict)
    #: Names of the new owner without a row; the attempt that writes the consumer must require them.
    missing_names: list[Name] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        """Whether it had no row when it was read."""
        return self.generation is None

    @property
    def next_generation(self) -> int:
        """The generation after a claim."""
        return 1 if self.generation is None else self.generation + 1

    def check_generation(self, stated: int | None) -> None:
        """Raise ConsumerGenerationConflict unless the client states the current generation, or None for a new consumer.

        The caller has ruled out an expired lease.
        """
        exists = not self.is_new and self.holds
        if exists and stated != self.generation:
            raise errors.ConsumerGenerationConflict(expected=self.generation, given=stated)
        # A consumer without allocations is invisible, but a client that states the generation of its row may use it.
        if not exists and stated is not None and stated != self.generation:
            raise errors.ConsumerGenerationConflict(expected="null", given=stated)

    # --- reading ---

    @classmethod
    def read_for_claims(
        cls, db: Transaction, owners: Mapping[str, Owner | None], providers: Collection[str]
    ) -> tuple[dict[str, Consumer], dict[str, int]]:
        """Read the consumers, names and providers of claims; in one statement, unless they are many.

        Args:
            owners: The owners to write, by consumer uuid; None does not change the owner.
            providers: Uuids of providers.

        Returns:
            A consumer for each uuid, even if absent; and the ids of the existing providers, by uuid.
        """
        every_name = itertools.chain.from_iterable(owner.names for owner in owners.values() if owner)
        owner_names = list(dict.fromkeys(every_name))
        if len(owner_names) <= _MAX_NAMES and len(providers) <= _MAX_PROVIDERS:
            statement = _select(tuple(name.kind for name in owner_names), with_providers=bool(providers))
            parameters: dict[str, Any] = {"uuids": list(owners), **names.parameters(owner_names)}
            if providers:
                parameters["providers"] = list(providers)
            rows = list(db.execute(statement, parameters))
            by_uuid = cls._collect(owners, rows)
            name_ids = {owner_names[row.number]: row.id for row in rows if row.number >= 0}
            provider_ids = {
                row.provider: row.id for row in rows if row.number == _PROVIDER and row.provider in providers
            }
        else:
            by_uuid = cls._collect(owners, db.execute(_select(), {"uuids": list(owners)}))
            name_ids = names.find(db, owner_names)
            provider_ids = ResourceProvider.ids(db, providers)
        ids = names.with_placeholder_ids(owner_names, name_ids)
        for uuid, owner in owners.items():
            if owner:
                by_uuid[uuid].columns = owner.columns(ids)
                by_uuid[uuid].missing_names = [name for name in owner.names if name not in name_ids]
        return by_uuid, provider_ids

    @classmethod
    def _collect(cls, uuids: Iterable[str], rows: Iterable[Any]) -> dict[str, Consumer]:
        collected = {uuid: cls(uuid) for uuid in uuids}
        for row in rows:
            consumer = collected.get(row.uuid)
            if consumer is None:
                continue  # a name, a provider, or a uuid in another case, which some collations match
            if row.id is not None:
                consumer.id, consumer.generation = row.id, row.generation
                consumer.is_expired = bool(row.is_expired)
            consumer.holds = bool(row.holds)
        return collected

    # --- writing ---

    @staticmethod
    def create_and_lock(db: Transaction, uuids: Collection[str]) -> None:
        """Insert a row for each uuid without one, and lock all the rows until the transaction ends."""
        # An upsert, because other transactions may insert and delete the row at any time.
        lock = dialects.upsert(db.dialect, consumers.c.uuid, generation=consumers.c.generation)
        new = {"project_id": 0, "user_id": 0, "generation": 0}
        db.execute(lock, [{"uuid": uuid, **new} for uuid in sorted(uuids)])

    @staticmethod
    def insert_all(db: Transaction, new: Collection[Consumer]) -> None:
        """Insert rows for new consumers; collide if another transaction has inserted one of them since."""
        rows = [{"uuid": consumer.uuid, "generation": 1, **consumer.columns} for consumer in new]
        ids = db.insert(_INSERT, rows, key="uuid")
        for consumer in new:
            consumer.id = ids[consumer.uuid]

    @staticmethod
    def delete_new(db: Transaction, uuids: Collection[str]) -> None:
        """Delete rows that this transaction inserted."""
        if uuids:
            db.execute(_DELETE_BY_UUIDS, {"uuids": list(uuids)})

    @classmethod
    def lock_named(cls, db: Transaction, uuids: Collection[str]) -> None:
        """Lock and write rows that this transaction relies on; insert a row for each uuid without one.

        They are written because locks are not replicated between Galera nodes (docs/adr/0012).
        """
        cls.create_and_lock(db, uuids)
        db.execute(_TOUCH, {"uuids": list(uuids), **touch_parameters()})

    @staticmethod
    def delete_created(db: Transaction, uuids: Collection[str]) -> None:
        """Delete the rows that were inserted only to be locked: only these have the project id 0."""
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
        """Advance the generation of the row by one, and write the new owner.

        Raises:
            Collision: Another transaction has changed or deleted the row since it was read.
        """
        new = {f"new_{name}": value for name, value in self.columns.items()}
        self._write(db, _ADVANCE, {**new, "now": utcnow()})

    def delete(self, db: Transaction) -> None:
        """Delete the row, if it exists.

        Raises:
            Collision: As for ``advance``.
        """
        if not self.is_new:
            self._write(db, _DELETE, {})
        elif self.holds:
            # Until this transaction ends, the deleted row keeps other transactions from inserting one and claiming.
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
_TOUCH = sa.update(consumers).where(consumers.c.uuid.in_(_UUIDS)).values(updated_at=touch_value(consumers))
_DELETE_ROWS = sa.delete(consumers).where(consumers.c.uuid.in_(_UUIDS))
_DELETE_BY_UUIDS = CompiledStatement(_DELETE_ROWS)
_LOCK = sa.select(consumers.c.generation).where(consumers.c.id == sa.bindparam("id_")).with_for_update(key_share=True)
_DELETE_CREATED = _DELETE_ROWS.where(consumers.c.project_id == 0, consumers.c.generation == 0)
#: Values of the column ``number`` in rows of consumers and of providers; other rows contain the number of a name.
_CONSUMER, _PROVIDER = -1, -2


def _number(number: int) -> sa.ColumnElement[int]:
    return sa.literal_column(str(number)).label("number")


_SAME_CONSUMER = allocations.c.consumer_id == consumers.c.uuid
_WITH_ROW = (
    sa.select(
        _number(_CONSUMER),
        consumers.c.id.label("id"),
        consumers.c.uuid.label("uuid"),
        consumers.c.generation.label("generation"),
        sa.exists().where(_SAME_CONSUMER).label("holds"),
        sa.null().label("provider"),
        LEASE_HAS_EXPIRED.label("is_expired"),
    )
    .select_from(consumers)
    .outerjoin(claims, claims.c.consumer_id == consumers.c.id)
    .where(consumers.c.uuid.in_(_UUIDS))
)
_WITHOUT_ROW = sa.select(
    *(_number(_CONSUMER), sa.null(), allocations.c.consumer_id, sa.null(), sa.true(), *[sa.null()] * 2)
).where(allocations.c.consumer_id.in_(_UUIDS), ~sa.exists().where(_SAME_CONSUMER))
# Uuids of providers are in a separate column, because uuid columns may have different collations.
_PROVIDERS = sa.select(
    _number(_PROVIDER), resource_providers.c.id, *[sa.null()] * 3, resource_providers.c.uuid, sa.null()
).where(resource_providers.c.uuid.in_(sa.bindparam("providers", expanding=True)))


@functools.lru_cache
def _select(kinds: tuple[str, ...] = (), *, with_providers: bool = False) -> CompiledStatement:
    """Return the statement for consumers, with and without a row, and for the ids of names of these kinds.

    One statement reads a consistent state.
    """
    named = [names.lookup(kind, number).add_columns(*[sa.null()] * 5) for number, kind in enumerate(kinds)]
    providers = [_PROVIDERS] if with_providers else []
    return CompiledStatement(sa.union_all(_WITH_ROW, _WITHOUT_ROW, *named, *providers))
