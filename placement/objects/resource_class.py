"""Resource classes: the names of what is counted.

Ids are never cached: a class can be renamed or deleted, and its id given to another, by any process at any time.
Whoever writes a class id reads it in the same transaction, or joins by name.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.tables import inventories, resource_classes, touch_of, touched
from placement.db.transaction import Collision, Reading, Transaction

#: Ids of custom classes begin here; those below belong to the standard ones.
FIRST_CUSTOM_ID = 10000
CUSTOM_PREFIX = "CUSTOM_"
#: Attempts to create a class: creators race for the next id.
CREATE_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class ResourceClass:
    id: int
    name: str
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None

    @property
    def standard(self) -> bool:
        return self.id < FIRST_CUSTOM_ID

    @property
    def modified(self) -> datetime.datetime | None:
        """When the row was last written."""
        return self.updated_at or self.created_at

    @classmethod
    def all(cls, db: Reading) -> list[Self]:
        """Every class, in the order of their ids: the standard ones first."""
        return [cls(*row) for row in db.execute(_ALL)]

    @classmethod
    def find(cls, db: Reading, name: str) -> Self | None:
        """The class of this very name, or None."""
        return next((cls(*row) for row in db.execute(_BY_NAME, {"name": name}) if row.name == name), None)

    @classmethod
    def get(cls, db: Reading, name: str) -> Self:
        """The class; raises ResourceClassNotFound."""
        found = cls.find(db, name)
        if found is None:
            raise errors.ResourceClassNotFound(name=name)
        return found

    @classmethod
    def lock(cls, db: Transaction, name: str) -> Self:
        """The class, its row locked until the transaction ends; raises ResourceClassNotFound."""
        found = [cls(*row) for row in db.execute(_LOCK, {"name": name}) if row.name == name]
        if not found:
            raise errors.ResourceClassNotFound(name=name)
        return found[0]

    @classmethod
    def ids(cls, db: Reading, names: Collection[str]) -> dict[str, int]:
        """Name to id; raises UnknownResourceClass for the first that does not exist."""
        if not names:
            return {}
        ids = {row.name: row.id for row in db.execute(_IDS, {"names": list(names)})}
        cls.all_known(names, ids)
        return ids

    @staticmethod
    def hold(db: Transaction, ids: Mapping[str, int]) -> None:
        """Keep these classes from being deleted or renamed until the transaction ends; raises Collision if one was.

        Standard ones never are.  The rows of custom ones are written, since a mere lock is unknown to other Galera
        nodes; in the order of their ids.
        """
        for name, class_id in sorted(ids.items(), key=lambda item: item[1]):
            if class_id < FIRST_CUSTOM_ID:
                continue
            if db.execute(_TOUCH, {"id_": class_id, "name_": name, **touched()}).rowcount != 1:
                raise Collision

    @classmethod
    def check(cls, db: Reading, names: Collection[str]) -> None:
        """Nothing; raises UnknownResourceClass for the first that does not exist."""
        if names:
            cls.all_known(names, db.execute(_IDS, {"names": list(names)}).scalars().all())

    @staticmethod
    def all_known(names: Collection[str], known: Collection[str]) -> None:
        """Nothing; raises UnknownResourceClass for the first name that is not among the known ones."""
        for name in names:
            if name not in known:
                raise errors.UnknownResourceClass(name=name)

    @classmethod
    def create(cls, db: Transaction, name: str) -> bool:
        """Whether the class was made; False if it is there."""
        if cls.find(db, name) is not None:
            return False
        highest: int = db.execute(sa.select(sa.func.max(resource_classes.c.id))).scalar() or 0
        # Two creators that come to the same id collide on the primary key, and the later one tries again.
        db.execute(sa.insert(resource_classes).values(id=max(FIRST_CUSTOM_ID, highest + 1), name=name))
        db.changed(feed.NO_PROVIDER, feed.NAMES)
        return True

    def rename(self, db: Transaction, name: str) -> None:
        """Give the class another name; inventories follow, since they know it by id."""
        if self.standard:
            raise errors.ResourceClassIsStandard(name=self.name)
        if name == self.name:
            return
        if any(row.id != self.id for row in db.execute(_BY_NAME, {"name": name})):
            raise errors.ResourceClassNameTaken(name=name)
        db.execute(sa.update(resource_classes).where(resource_classes.c.id == self.id).values(name=name))
        db.changed(feed.NO_PROVIDER, feed.NAMES)

    def delete(self, db: Transaction) -> None:
        """Remove the class, which must be custom and in nobody's inventory; its row must be locked."""
        if self.standard:
            raise errors.ResourceClassNotDeletable(name=self.name)
        if db.execute(_IN_USE, {"id_": self.id}).first() is not None:
            raise errors.ResourceClassInUse(name=self.name)
        db.execute(sa.delete(resource_classes).where(resource_classes.c.id == self.id))
        db.changed(feed.NO_PROVIDER, feed.NAMES)


_C = resource_classes.c
_ALL = sa.select(_C.id, _C.name, _C.created_at, _C.updated_at).order_by(_C.id)
_BY_NAME = _ALL.where(_C.name == sa.bindparam("name"))
_LOCK = _BY_NAME.with_for_update()
_IDS = sa.select(_C.name, _C.id).where(_C.name.in_(sa.bindparam("names", expanding=True))).order_by(_C.id)
_TOUCH = sa.update(resource_classes).where(_C.id == sa.bindparam("id_"), _C.name == sa.bindparam("name_"))
_TOUCH = _TOUCH.values(updated_at=touch_of(resource_classes))
_IN_USE = sa.select(inventories.c.id).where(inventories.c.resource_class_id == sa.bindparam("id_")).limit(1)
