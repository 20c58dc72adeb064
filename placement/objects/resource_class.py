"""Resource classes: the names of countable resources.

Ids are never cached, because any process can rename or delete a class and reuse its id at any time.  A transaction that
writes a class id reads it itself, or joins by name.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.schema.tables import inventories, resource_classes, touch_parameters, touch_value
from placement.db.upkeep.standard import FIRST_CUSTOM_ID
from placement.db.writes.notes import RESOURCE_CLASS
from placement.db.writes.transaction import Collision, Reading, Transaction

#: Attempts to create a class; concurrent transactions may choose the same id.
CREATE_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class ResourceClass:
    """The record of a resource class."""

    id: int
    name: str
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None

    @property
    def standard(self) -> bool:
        """Whether the class is a standard one, rather than a custom one."""
        return self.id < FIRST_CUSTOM_ID

    @property
    def modified(self) -> datetime.datetime | None:
        """The time at which the row was last written."""
        return self.updated_at or self.created_at

    @classmethod
    def all(cls, db: Reading) -> list[Self]:
        """Return all classes, ordered by id: the standard classes first."""
        return [cls(*row) for row in db.execute(_ALL)]

    @classmethod
    def find(cls, db: Reading, name: str) -> Self | None:
        """Return the class with exactly this name, case included, or None."""
        return next((cls(*row) for row in db.execute(_BY_NAME, {"name": name}) if row.name == name), None)

    @classmethod
    def get(cls, db: Reading, name: str) -> Self:
        """Return the class with exactly this name; raise ResourceClassNotFound if it does not exist."""
        resource_class = cls.find(db, name)
        if resource_class is None:
            raise errors.ResourceClassNotFound(name=name)
        return resource_class

    @classmethod
    def ids(cls, db: Reading, names: Collection[str]) -> dict[str, int]:
        """Return the ids of these classes by name; raise UnknownResourceClass for the first that does not exist."""
        if not names:
            return {}
        ids = {row.name: row.id for row in db.execute(_IDS, {"names": list(names)})}
        for name in names:
            if name not in ids:
                raise errors.UnknownResourceClass(name=name)
        return ids

    @staticmethod
    def pin(db: Transaction, ids: Mapping[str, int]) -> None:
        """Keep these classes (ids by name) from being deleted or renamed until the transaction ends.

        Standard classes are never deleted or renamed.  The rows of custom classes are written, in the order of their
        ids, because locks are not replicated between Galera nodes (docs/adr/0012).

        Raises:
            Collision: A class was deleted or renamed since its id was read.
        """
        for name, class_id in sorted(ids.items(), key=lambda item: item[1]):
            if class_id < FIRST_CUSTOM_ID:
                continue
            if db.execute(_TOUCH, {"id_": class_id, "name_": name, **touch_parameters()}).rowcount != 1:
                raise Collision

    @classmethod
    def create(cls, db: Transaction, name: str) -> bool:
        """Create a custom class unless it exists; return whether it was created."""
        if cls.find(db, name) is not None:
            return False
        highest: int = db.execute(sa.select(sa.func.max(resource_classes.c.id))).scalar() or 0
        # Of two transactions that choose the same id, the later one collides on the primary key and is retried.
        db.execute(sa.insert(resource_classes).values(id=max(FIRST_CUSTOM_ID, highest + 1), name=name))
        db.record_change(feed.NO_PROVIDER, feed.NAMES)
        db.note(RESOURCE_CLASS, name, {("name",): (None, name)})
        return True

    @classmethod
    def rename(cls, db: Transaction, name: str, new_name: str) -> None:
        """Rename a custom class; inventories refer to it by id.

        Raises:
            ResourceClassNotFound: The class does not exist.
            ResourceClassIsStandard: The class is a standard one.
            ResourceClassNameTaken: Another class has the new name.
        """
        renamed = cls._lock(db, name)
        if renamed.standard:
            raise errors.ResourceClassIsStandard(name=name)
        if new_name == name:
            return
        if any(row.id != renamed.id for row in db.execute(_BY_NAME, {"name": new_name})):
            raise errors.ResourceClassNameTaken(name=new_name)
        db.execute(_RENAME, {"id_": renamed.id, "becomes": new_name})
        db.note(RESOURCE_CLASS, name, {("name",): (name, new_name)})
        db.record_change(feed.NO_PROVIDER, feed.NAMES)

    @classmethod
    def delete(cls, db: Transaction, name: str) -> None:
        """Delete a custom class without inventories.

        Raises:
            ResourceClassNotFound: The class does not exist.
            ResourceClassNotDeletable: The class is a standard one.
            ResourceClassInUse: A provider has an inventory of it.
        """
        deleted = cls._lock(db, name)
        if deleted.standard:
            raise errors.ResourceClassNotDeletable(name=name)
        if db.execute(_IN_USE, {"id_": deleted.id}).first() is not None:
            raise errors.ResourceClassInUse(name=name)
        db.execute(_DELETE, {"id_": deleted.id})
        db.note(RESOURCE_CLASS, name, {("name",): (name, None)})
        db.record_change(feed.NO_PROVIDER, feed.NAMES)

    @classmethod
    def _lock(cls, db: Transaction, name: str) -> Self:
        """Lock the class until the transaction ends, and return it, or raise ResourceClassNotFound."""
        for row in db.execute(_LOCK, {"name": name}):
            if row.name == name:
                return cls(*row)
        raise errors.ResourceClassNotFound(name=name)


_C = resource_classes.c
_THIS = _C.id == sa.bindparam("id_")
_ALL = sa.select(_C.id, _C.name, _C.created_at, _C.updated_at).order_by(_C.id)
_BY_NAME = _ALL.where(_C.name == sa.bindparam("name"))
_LOCK = _BY_NAME.with_for_update()
_IDS = sa.select(_C.name, _C.id).where(_C.name.in_(sa.bindparam("names", expanding=True))).order_by(_C.id)
_TOUCH = sa.update(resource_classes).where(_THIS, _C.name == sa.bindparam("name_"))
_TOUCH = _TOUCH.values(updated_at=touch_value(resource_classes))
_RENAME = sa.update(resource_classes).where(_THIS).values(name=sa.bindparam("becomes"))
_DELETE = sa.delete(resource_classes).where(_THIS)
_IN_USE = sa.select(inventories.c.id).where(inventories.c.resource_class_id == sa.bindparam("id_")).limit(1)
