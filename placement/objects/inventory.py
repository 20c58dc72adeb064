"""Inventories: the amount of each resource class of a provider.  A ``LockedProvider`` changes them."""

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

#: Columns that clients set; the names in bodies are the same.
AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory of one class on one provider.  Amounts are in units of the class."""

    resource_class: str
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    allocation_ratio: float = 1.0
    modified: datetime.datetime | None = None
    #: The id of the class, in a record that was read; the class may be renamed between two statements.
    class_id: int | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that clients set, by name."""
        return {name: getattr(self, name) for name in AMOUNTS}

    @property
    def capacity(self) -> int:
        """The amount that all consumers together can hold, truncated to a whole number (docs: api-capacity)."""
        return int(capacity.capacity(self.total, self.reserved, self.allocation_ratio))

    @classmethod
    def of_body(cls, resource_class: str, body: Mapping[str, Any]) -> Self:
        """Return the inventory in a body; missing members have their defaults."""
        return cls(resource_class, **{name: body[name] for name in AMOUNTS if name in body})

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> list[Self]:
        """Return the inventories of the provider, ordered by class id."""
        return [cls(*row) for row in db.execute(_OF_PROVIDER, {"provider": provider.id})]

    @classmethod
    def get(
        cls,
        db: Reading,
        provider: ResourceProvider,
        resource_class: str,
        missing: type[errors.Failure] = errors.InventoryNotFound,
    ) -> Self:
        """Return the provider's inventory of the class.

        Raises:
            missing: The provider has no inventory of the class.
        """
        for inventory in cls.of_provider(db, provider):
            if inventory.resource_class == resource_class:
                return inventory
        raise missing(resource_class=resource_class, uuid=provider.uuid)

    @staticmethod
    def check_capacity(uuid: str, records: Iterable[Inventory], *, may_be_full: bool) -> None:
        """Raise a failure if too much of an inventory is reserved.

        Args:
            uuid: The provider, for the message.
            may_be_full: Whether everything may be reserved, which leaves a capacity of 0.

        Raises:
            ReservedExceedsTotal: ``may_be_full``, and a capacity is below 0.
            ReservedReachesTotal: Not ``may_be_full``, and a capacity is 0 or below.
        """
        for record in records:
            facts = {"resource_class": record.resource_class, "uuid": uuid}
            if may_be_full and record.capacity < 0:
                raise errors.ReservedExceedsTotal(**facts)
            if not may_be_full and record.capacity <= 0:
                raise errors.ReservedReachesTotal(**facts)


_I, _C = inventories.c, resource_classes.c
#: A statement that reads the fields of ``Inventory``, in order, for all providers.
SELECT = sa.select(
    _C.name, *(_I[name] for name in AMOUNTS), sa.func.coalesce(_I.updated_at, _I.created_at), _C.id
).join(resource_classes, _C.id == _I.resource_class_id)
_OF_PROVIDER = SELECT.where(_I.resource_provider_id == sa.bindparam("provider")).order_by(_C.id)
