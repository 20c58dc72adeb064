"""Resource providers: their rows, their generations and their trees.

Whoever changes anything about a provider locks its row first, so that all changes of one provider happen one after
another; whoever changes several locks them in the order of their ids, in one statement.  That order is the reason why
concurrent claims wait for each other instead of failing.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.tables import (
    allocations,
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    touch_of,
    touched,
    utcnow,
)
from placement.db.transaction import Collision, Reading, Transaction

if TYPE_CHECKING:
    from placement.db.transaction import Rows

#: Ids in one statement.
_MANY = 5000


@dataclass(frozen=True, slots=True)
class ResourceProvider:
    """One provider as it was when it was read; a change returns another."""

    id: int
    uuid: str
    name: str
    generation: int
    root_id: int | None
    parent_id: int | None
    root_uuid: str | None
    parent_uuid: str | None
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None

    @property
    def top(self) -> int:
        """The id of its root, which is itself where an older Placement has written down none."""
        return self.id if self.root_id is None else self.root_id

    @property
    def modified(self) -> datetime.datetime | None:
        """When the row was last written."""
        return self.updated_at or self.created_at

    @classmethod
    def find(cls, db: Reading, uuid: str) -> Self | None:
        """The provider, or None; the spelling of the uuid counts."""
        return cls._one(db.execute(_BY_UUID, {"uuid": uuid}), uuid)

    @classmethod
    def get(cls, db: Reading, uuid: str, missing: type[errors.NotFound] = errors.ProviderNotFound) -> Self:
        """The provider; raises ``missing``."""
        provider = cls.find(db, uuid)
        if provider is None:
            raise missing(uuid=uuid)
        return provider

    @classmethod
    def lock(cls, db: Transaction, uuid: str, missing: type[errors.NotFound] = errors.ProviderNotFound) -> Self:
        """The provider, its row locked until the transaction ends; raises ``missing``."""
        provider = cls.lock_all(db, [uuid]).get(uuid)
        if provider is None:
            raise missing(uuid=uuid)
        return provider

    @classmethod
    def lock_all(cls, db: Transaction, uuids: Collection[str], ids: Collection[int] = ()) -> dict[str, Self]:
        """These providers by uuid, locked in the order of their ids; those that do not exist are absent."""
        if not ids and len(uuids) == 1:
            (uuid,) = uuids
            return cls._locked(row for row in db.execute(_LOCK_BY_UUID, {"uuid": uuid}) if row.uuid == uuid)
        # A database locks rows in the order in which it finds them, and finds them by uuid if asked by uuid.
        wanted = {*cls.ids(db, uuids).values(), *ids}
        if not wanted:
            return {}
        return cls._locked(db.execute(_LOCK_BY_ID, {"ids": sorted(wanted)}))

    @staticmethod
    def ids(db: Reading, uuids: Collection[str]) -> dict[str, int]:
        """The ids of these providers by uuid, which never change; those that do not exist are absent."""
        if not uuids:
            return {}
        rows = db.execute(_IDS_BY_UUID, {"uuids": list(uuids)})
        return {row.uuid: row.id for row in rows if row.uuid in uuids}

    @classmethod
    def of_ids(cls, db: Reading, ids: Collection[int]) -> list[Self]:
        """The providers with these ids, in the order of their ids."""
        return [cls(*row) for row in db.execute(_BY_ID, {"ids": list(ids)})] if ids else []

    @staticmethod
    def newest_change(db: Reading, ids: Collection[int] | None) -> datetime.datetime | None:
        """When one of these providers, or any (None), was last made or changed."""
        if ids is None:
            newest: datetime.datetime | None = db.execute(_NEWEST).scalar()
            return newest
        batches = [list(ids)[start : start + _MANY] for start in range(0, len(ids), _MANY)]
        found = [db.execute(_NEWEST_OF, {"ids": batch}).scalar() for batch in batches]
        return max((date for date in found if date is not None), default=None)

    @classmethod
    def _one(cls, rows: Rows, uuid: str) -> Self | None:
        # Some collations find a uuid in another case, too; to clients these are different strings.
        row = rows.first()
        return None if row is None or row.uuid != uuid else cls(*row)

    @classmethod
    def _locked(cls, rows: Iterable[Any]) -> dict[str, Self]:
        """Providers by uuid, as they are now that they are locked; raises Collision if that cannot be told."""
        providers = {row.uuid: cls(*row) for row in rows}
        for provider in providers.values():
            # PostgreSQL waits for a lock and then reads the row anew, but others as of the beginning of the statement:
            # it may not see the parent or root that the provider was given meanwhile.
            there = provider.root_uuid is not None, provider.parent_uuid is not None
            if there != (provider.root_id is not None, provider.parent_id is not None):
                raise Collision
        return providers

    def expect(self, generation: int, conflict: type[errors.Conflict] = errors.ProviderGenerationConflict) -> None:
        """Nothing, if the client knows the present generation; raises ``conflict`` otherwise."""
        if generation != self.generation:
            raise conflict()

    def advance(self, db: Transaction, by: int = 1) -> Self:
        """The provider, one generation (or ``by``) on; its row must be locked."""
        updated_at = utcnow()
        moved = db.execute(
            _ADVANCE, {"id_": self.id, "was": self.generation, "becomes": self.generation + by, "now": updated_at}
        )
        if moved.rowcount != 1:
            raise Collision
        db.changed(self.id, feed.SHAPE)
        return replace(self, generation=self.generation + by, updated_at=updated_at)

    @staticmethod
    def advance_all(db: Transaction, ids: Collection[int], perhaps: Collection[int] = ()) -> None:
        """Move these providers one generation on, for a change of usage; their rows are locked by it.

        Raises Collision if one of them is gone.  Those that are ``perhaps`` there may be: another implementation may
        have left allocations without their provider.
        """
        both = {*ids, *perhaps}
        if not both:
            return
        among = {"ids": sorted(both)}
        if len(both) > 1:
            # An update takes its locks in whatever order it finds the rows.
            db.execute(_LOCK, among)
        if db.execute(_ADVANCE_ALL, among | {"now": utcnow()}).rowcount != len(both):
            both &= {provider.id for provider in ResourceProvider.of_ids(db, both)}
            if not both.issuperset(ids):
                raise Collision
        for provider_id in both:
            # The generation is part of what a provider's record shows, but a search reads only its usage anew.
            db.changed(provider_id, feed.USAGE)

    @staticmethod
    def touch(db: Transaction, ids: Collection[int]) -> None:
        """Write these rows, which must be locked: only their dates change.

        For what a transaction relies on and does not change.  Between Galera nodes a lock excludes nothing: of two
        transactions the later one is refused only where both have written the same row (docs/adr/0012).
        """
        db.execute(_TOUCH, {"ids": sorted(ids), **touched()})

    @classmethod
    def create(cls, db: Transaction, *, uuid: str, name: str, parent_uuid: str | None = None) -> Self:
        """The new provider, of generation 0, a root or the child of another."""

        def refused(reason: str) -> errors.Failure:
            return errors.ProviderNotCreated(name=name, uuid=uuid, reason=reason)

        if not name:
            raise refused("name is required")
        if parent_uuid == uuid:
            raise refused(
                "parent provider UUID cannot be same as UUID. "
                "Please set parent provider UUID to None if there is no parent."
            )
        parent = None if parent_uuid is None else cls._lock_with_root(db, parent_uuid)
        if parent_uuid is not None and parent is None:
            raise refused("parent provider UUID does not exist.")
        for taken in db.execute(_TAKEN, {"uuid": uuid, "name": name}):
            # A client whose uuid is taken reads the provider; one whose name is taken gives up.  So the uuid goes
            # first.
            if taken.uuid.lower() == uuid.lower():
                raise errors.ProviderUuidTaken(uuid=uuid)
            raise errors.ProviderNameTaken(name=name)
        created_at = utcnow()
        row = {"uuid": uuid, "name": name, "generation": 0, "created_at": created_at}
        if parent is not None:
            cls.touch(db, [parent.id])
            row |= {"parent_provider_id": parent.id, "root_provider_id": parent.top}
        key = db.execute(sa.insert(resource_providers).values(row)).inserted_primary_key
        assert key is not None
        if parent is None:
            db.execute(_SET_ROOT, {"ids": [key[0]], "root": key[0]})
        db.changed(key[0], feed.SHAPE)
        return cls(
            id=key[0],
            uuid=uuid,
            name=name,
            generation=0,
            root_id=key[0] if parent is None else parent.top,
            parent_id=None if parent is None else parent.id,
            root_uuid=uuid if parent is None else parent.root_uuid or parent.uuid,
            parent_uuid=None if parent is None else parent.uuid,
            created_at=created_at,
            updated_at=None,
        )

    @classmethod
    def _lock_with_root(cls, db: Transaction, uuid: str) -> Self | None:
        """The provider, or None.  Its row and its root's are locked, in the order of their ids.

        The foreign key of a child locks the root's row on MySQL, but after the parent's, whichever has the lower id.
        """
        found = cls.find(db, uuid)
        if found is None:
            return None
        locked = cls.lock_all(db, (), {found.id, found.top}).get(uuid)
        if locked is None or locked.root_id != found.root_id:
            raise Collision
        return locked

    def rename(self, db: Transaction, name: str) -> Self:
        """The provider under another name; its row must be locked."""
        if name == self.name:
            return self
        if any(row.id != self.id for row in db.execute(_NAMED, {"name": name})):
            raise errors.ProviderRenameTaken(name=name)
        db.execute(_RENAME, {"id_": self.id, "becomes": name})
        db.changed(self.id, feed.SHAPE)
        return replace(self, name=name, updated_at=utcnow())

    def delete(self, db: Transaction) -> None:
        """Remove the provider with its inventories and associations; its row must be locked."""
        if db.execute(_CHILD, {"id_": self.id}).first() is not None:
            raise errors.ProviderHasChildren(uuid=self.uuid)
        if db.execute(_ALLOCATION, {"id_": self.id}).first() is not None:
            raise errors.ProviderHasAllocations(uuid=self.uuid)
        for table in (inventories, resource_provider_traits, resource_provider_aggregates):
            db.execute(sa.delete(table).where(table.c.resource_provider_id == self.id))
        # A root refers to itself, which some databases would not let go.
        db.execute(_SET_ROOT, {"ids": [self.id], "root": None})
        db.execute(sa.delete(_P).where(_P.c.id == self.id))
        db.changed(self.id, feed.GONE)


_P = resource_providers
#: Others may have left NULL, from which no provider would ever move on.
_GENERATION = sa.func.coalesce(_P.c.generation, 0)


def _uuid_of(column: sa.Column[Any]) -> sa.ScalarSelect[str]:
    other = resource_providers.alias()
    return sa.select(other.c.uuid).where(other.c.id == column).scalar_subquery()


#: The columns of a record, in its order.  Subqueries rather than joins, so that a lock touches only the provider's row.
COLUMNS = (
    _P.c.id,
    _P.c.uuid,
    _P.c.name,
    _GENERATION.label("generation"),
    _P.c.root_provider_id,
    _P.c.parent_provider_id,
    _uuid_of(_P.c.root_provider_id).label("root_uuid"),
    _uuid_of(_P.c.parent_provider_id).label("parent_uuid"),
    _P.c.created_at,
    _P.c.updated_at,
)
_SELECT = sa.select(*COLUMNS)
_BY_UUID = _SELECT.where(_P.c.uuid == sa.bindparam("uuid"))
_AMONG = _P.c.id.in_(sa.bindparam("ids", expanding=True))
_BY_ID = _SELECT.where(_AMONG).order_by(_P.c.id)
# Ids never change, and PostgreSQL can be told: who refers to the row need not wait then, nor meet us in a deadlock.
_NEWEST = sa.select(sa.func.max(sa.func.coalesce(_P.c.updated_at, _P.c.created_at)))
_NEWEST_OF = _NEWEST.where(_AMONG)
_LOCK_BY_UUID = _BY_UUID.with_for_update(of=_P, key_share=True)
_LOCK_BY_ID = _BY_ID.with_for_update(of=_P, key_share=True)
_LOCK = sa.select(_P.c.id).where(_AMONG).order_by(_P.c.id).with_for_update(key_share=True)
_IDS_BY_UUID = sa.select(_P.c.id, _P.c.uuid).where(_P.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
_TAKEN = (
    sa.select(_P.c.uuid, _P.c.name)
    .where((_P.c.uuid == sa.bindparam("uuid")) | (_P.c.name == sa.bindparam("name")))
    .order_by(sa.case((_P.c.uuid == sa.bindparam("uuid"), 0), else_=1))
)
_NAMED = sa.select(_P.c.id).where(_P.c.name == sa.bindparam("name"))
_CHILD = sa.select(_P.c.id).where(_P.c.parent_provider_id == sa.bindparam("id_")).limit(1)
_ALLOCATION = sa.select(allocations.c.id).where(allocations.c.resource_provider_id == sa.bindparam("id_")).limit(1)
_ADVANCE = (
    sa.update(_P)
    .where(_P.c.id == sa.bindparam("id_"), sa.bindparam("was") == _GENERATION)
    .values(generation=sa.bindparam("becomes"), updated_at=sa.bindparam("now"))
)
_ADVANCE_ALL = sa.update(_P).where(_AMONG).values(generation=_GENERATION + 1, updated_at=sa.bindparam("now"))
_TOUCH = sa.update(_P).where(_AMONG).values(updated_at=touch_of(_P))
_RENAME = sa.update(_P).where(_P.c.id == sa.bindparam("id_")).values(name=sa.bindparam("becomes"))
_SET_ROOT = sa.update(_P).where(_AMONG).values(root_provider_id=sa.bindparam("root"))
