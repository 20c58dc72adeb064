"""Inventories: what a provider has of each resource class."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from placement import errors
from placement.db.tables import allocations, inventories, resource_classes
from placement.db.transaction import Reading, Transaction
from placement.objects import capacity
from placement.objects.provider import ResourceProvider
from placement.objects.resource_class import ResourceClass


@dataclass(frozen=True, slots=True)
class Inventory:
    """What one provider has of one class.  Amounts are in units of the class."""

    resource_class: str
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    allocation_ratio: float = 1.0
    modified: datetime.datetime | None = None
    #: The class by id, of a record that was read: names can change between two statements.
    class_id: int | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that a client decides, by name."""
        return {name: getattr(self, name) for name in AMOUNTS}

    @property
    def capacity(self) -> int:
        """What can be held, cut to a whole number as it is shown (contract 3.5)."""
        return int(capacity.capacity(self.total, self.reserved, self.allocation_ratio))

    @classmethod
    def of_body(cls, resource_class: str, body: Mapping[str, Any]) -> Self:
        """What a client says about the class; what it leaves out has its default."""
        return cls(resource_class, **{name: body[name] for name in AMOUNTS if name in body})

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> list[Self]:
        """What the provider has, in the order of the class ids."""
        return [cls(*row) for row in db.execute(_OF_PROVIDER, {"provider": provider.id})]

    @classmethod
    def get(
        cls,
        db: Reading,
        provider: ResourceProvider,
        resource_class: str,
        missing: type[errors.Failure] = errors.InventoryNotFound,
    ) -> Self:
        """What the provider has of the class; raises ``missing``."""
        for inventory in cls.of_provider(db, provider):
            if inventory.resource_class == resource_class:
                return inventory
        raise missing(resource_class=resource_class, uuid=provider.uuid)

    @staticmethod
    def check_capacity(provider: ResourceProvider, records: Iterable[Inventory], *, may_be_full: bool) -> None:
        """Nothing; raises if a record leaves nothing to allocate, or less than nothing where ``may_be_full``."""
        for record in records:
            facts = {"resource_class": record.resource_class, "uuid": provider.uuid}
            if may_be_full and record.capacity < 0:
                raise errors.ReservedExceedsTotal(**facts)
            if not may_be_full and record.capacity <= 0:
                raise errors.ReservedReachesTotal(**facts)

    @classmethod
    def add(cls, db: Transaction, provider: ResourceProvider, record: Inventory) -> ResourceProvider:
        """The provider with one more inventory, one generation on; its row must be locked."""
        ids = ResourceClass.ids(db, [record.resource_class])
        if any(there.resource_class == record.resource_class for there in cls.of_provider(db, provider)):
            raise errors.InventoryPresent(resource_class=record.resource_class, uuid=provider.uuid)
        cls._insert(db, provider, [record], ids)
        return provider.advance(db)

    @classmethod
    def update(cls, db: Transaction, provider: ResourceProvider, record: Inventory) -> ResourceProvider:
        """The provider with this inventory in place of the one of the same class; its row must be locked."""
        ResourceClass.get(db, record.resource_class)
        present = cls.get(db, provider, record.resource_class, errors.NoInventoryToUpdate)
        cls._update(db, provider, [(present.class_id, record)])
        return provider.advance(db)

    @classmethod
    def replace(
        cls, db: Transaction, provider: ResourceProvider, records: Iterable[Inventory], *, keeping: bool = False
    ) -> None:
        """Make these the provider's inventories, or with ``keeping`` add them to those it has; its row must be locked.

        Raises UnknownResourceClass, and InventoryInUse if a class would go that is allocated.
        """
        wanted = {record.resource_class: record for record in records}
        present = {record.resource_class: record for record in cls.of_provider(db, provider)}
        ids = ResourceClass.ids(db, [name for name in wanted if name not in present])
        if not keeping:
            cls._remove(db, provider, [there for name, there in present.items() if name not in wanted])
        changed = [
            (present[name].class_id, record)
            for name, record in wanted.items()
            if name in present and record.columns != present[name].columns
        ]
        cls._update(db, provider, changed)
        cls._insert(db, provider, [record for name, record in wanted.items() if name not in present], ids)

    @classmethod
    def remove(cls, db: Transaction, provider: ResourceProvider, resource_class: str) -> ResourceProvider:
        """The provider without inventory of the class, one generation on; its row must be locked."""
        present = cls.get(db, provider, resource_class, errors.InventoryNotFoundForDelete)
        cls._remove(db, provider, [present], errors.InventoryNotDeletable)
        return provider.advance(db)

    @staticmethod
    def _remove(
        db: Transaction,
        provider: ResourceProvider,
        records: list[Inventory],
        in_use: type[errors.Conflict] = errors.InventoryInUse,
    ) -> None:
        if not records:
            return
        facts = {"provider": provider.id, "class_ids": [record.class_id for record in records]}
        allocated = set(db.execute(_ALLOCATED, facts).scalars())
        if allocated:
            names = [record.resource_class for record in records if record.class_id in allocated]
            raise in_use(resource_classes=", ".join(names), uuid=provider.uuid)
        db.execute(_DELETE, facts)

    @staticmethod
    def _update(db: Transaction, provider: ResourceProvider, records: list[tuple[int | None, Inventory]]) -> None:
        for class_id, record in records:
            db.execute(_UPDATE.values(record.columns), {"provider": provider.id, "class_id": class_id})

    @staticmethod
    def _insert(db: Transaction, provider: ResourceProvider, records: list[Inventory], ids: dict[str, int]) -> None:
        ResourceClass.hold(db, ids)
        rows = [
            {"resource_provider_id": provider.id, "resource_class_id": ids[record.resource_class], **record.columns}
            for record in records
        ]
        if rows:
            db.execute(sa.insert(inventories), rows)


AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")

_I, _A, _C = inventories.c, allocations.c, resource_classes.c
_OF_PROVIDER = (
    sa.select(_C.name, *(_I[name] for name in AMOUNTS), sa.func.coalesce(_I.updated_at, _I.created_at), _C.id)
    .join(resource_classes, _C.id == _I.resource_class_id)
    .where(_I.resource_provider_id == sa.bindparam("provider"))
    .order_by(_C.id)
)
_CLASSES: sa.BindParameter[Any] = sa.bindparam("class_ids", expanding=True)
_ALLOCATED = (
    sa.select(_A.resource_class_id)
    .where(_A.resource_provider_id == sa.bindparam("provider"), _A.resource_class_id.in_(_CLASSES))
    .distinct()
)
_DELETE = sa.delete(inventories).where(
    _I.resource_provider_id == sa.bindparam("provider"), _I.resource_class_id.in_(_CLASSES)
)
_UPDATE = sa.update(inventories).where(
    _I.resource_provider_id == sa.bindparam("provider"), _I.resource_class_id == sa.bindparam("class_id")
)
