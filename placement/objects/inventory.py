"""Inventories: how much of each resource class a provider has.  A locked provider changes them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from placement import errors
from placement.db.schema.tables import inventories, resource_classes
from placement.db.writes.transaction import Reading
from placement.objects import capacity
from placement.objects.provider import ResourceProvider

#: The columns that a client decides, by their names in bodies, too.
AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


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
    #: The id of the class, of a record that was read: a class can be renamed between two statements.
    class_id: int | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that a client decides, by name."""
        return {name: getattr(self, name) for name in AMOUNTS}

    @property
    def capacity(self) -> int:
        """The amount that consumers can hold together, cut to a whole number as it is shown (docs: api-capacity)."""
        return int(capacity.capacity(self.total, self.reserved, self.allocation_ratio))

    @classmethod
    def of_body(cls, resource_class: str, body: Mapping[str, Any]) -> Self:
        """The inventory that a client states; what the body leaves out has its default."""
        return cls(resource_class, **{name: body[name] for name in AMOUNTS if name in body})

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> list[Self]:
        """All inventories of the provider, in the order of the class ids."""
        return [cls(*row) for row in db.execute(_OF_PROVIDER, {"provider": provider.id})]

    @classmethod
    def get(
        cls,
        db: Reading,
        provider: ResourceProvider,
        resource_class: str,
        missing: type[errors.Failure] = errors.InventoryNotFound,
    ) -> Self:
        """The inventory that the provider has of the class.

        Raises:
            missing: It has none.
        """
        for inventory in cls.of_provider(db, provider):
            if inventory.resource_class == resource_class:
                return inventory
        raise missing(resource_class=resource_class, uuid=provider.uuid)

    @staticmethod
    def check_capacity(uuid: str, records: Iterable[Inventory], *, may_be_full: bool) -> None:
        """Raise a failure if one of the records leaves too little to allocate.

        Args:
            uuid: The provider, for the sentence.
            may_be_full: Whether all may be reserved, so that the capacity is 0.

        Raises:
            ReservedExceedsTotal: The capacity is below 0, where ``may_be_full``.
            ReservedReachesTotal: The capacity is not above 0, otherwise.
        """
        for record in records:
            facts = {"resource_class": record.resource_class, "uuid": uuid}
            if may_be_full and record.capacity < 0:
                raise errors.ReservedExceedsTotal(**facts)
            if not may_be_full and record.capacity <= 0:
                raise errors.ReservedReachesTotal(**facts)


_I, _C = inventories.c, resource_classes.c
#: Selects what ``Inventory(*row)`` takes, of all providers.
SELECT = sa.select(
    _C.name, *(_I[name] for name in AMOUNTS), sa.func.coalesce(_I.updated_at, _I.created_at), _C.id
).join(resource_classes, _C.id == _I.resource_class_id)
_OF_PROVIDER = SELECT.where(_I.resource_provider_id == sa.bindparam("provider")).order_by(_C.id)
