"""A node locked with its provider by a transaction: the only way to change a node.

The row of the provider is the lock of both.  Claims depend only on the provider's inventory, so every change that
matters to a claim advances the provider's generation and is in the change feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import sqlalchemy as sa

from placement import errors
from placement.db.schema.tables import utcnow
from placement.db.writes.notes import Pair, Path
from placement.db.writes.transaction import Transaction
from placement.extensions.baremetal import failures
from placement.extensions.baremetal.objects import states
from placement.extensions.baremetal.objects.node import Node, inventory_class, json_differs
from placement.extensions.baremetal.tables import baremetal_nodes
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.resource_class import ResourceClass
from placement.objects.trait import Trait

#: The kind of node events in the history.
_KIND = "node"
#: Columns that determine whether and to whom the node can be allocated.
_ALLOCATION_COLUMNS = {
    *("resource_class", "owner", "lessee", "parent_node", "provision_state", "power_state", "maintenance"),
}
#: Columns whose values are recorded in the history.
_HISTORY_COLUMNS = (
    *("name", "driver", "resource_class", "owner", "lessee", "parent_node", "provision_state"),
    *("target_provision_state", "power_state", "target_power_state", "maintenance"),
)
#: Words recorded instead of the values of details, which may be secrets.
_PRESENT, _CHANGED = "present", "changed"
#: Default values of a new node, by column.
_DEFAULTS: Mapping[str, Any] = {"provision_state": states.ENROLL, "maintenance": False, "details": {}}


def unit(resource_class: str | None, *, reserved: bool) -> Inventory:
    """Return the inventory of a node of this class: one unit, reserved if the node is unavailable."""
    return Inventory(inventory_class(resource_class), total=1, reserved=int(reserved), max_unit=1)


class LockedNode:
    """A node whose row, traits and inventory cannot change until the transaction ends.

    No consumer can become the holder, but the holder may release the node: deleting a consumer's allocations locks no
    provider.

    Attributes:
        node: The node with the changes of this transaction.
    """

    def __init__(self, db: Transaction, provider: LockedProvider | None, node: Node) -> None:
        self._db = db
        self._provider: LockedProvider | None = provider
        self.node = node

    @property
    def provider(self) -> LockedProvider:
        """The resource provider of the same uuid."""
        if self._provider is None:
            self._provider = LockedProvider.lock(self._db, self.node.uuid)
        return self._provider

    @classmethod
    def lock(cls, db: Transaction, uuid: str) -> Self:
        """Lock the provider of the node, recreate it if it was deleted, and return the node.

        Raises:
            NodeNotFound: No node has the uuid.
        """
        try:
            provider = LockedProvider.lock(db, uuid)
        except errors.ProviderNotFound:
            Node.get(db, uuid)
            provider = LockedProvider.create(db, uuid=uuid, name=uuid)
            locked = cls(db, provider, Node.get(db, uuid))
            locked.align()
            return locked
        # Read after locking, so that the node cannot change.
        return cls(db, provider, Node.get(db, uuid))

    @classmethod
    def of_claim(cls, db: Transaction, uuid: str) -> Self:
        """Return a node whose provider a claim of this transaction has locked, or raise NodeNotFound."""
        return cls(db, None, Node.get(db, uuid))

    @classmethod
    def create(cls, db: Transaction, uuid: str, **columns: Any) -> Self:
        """Insert a node; a provider with its uuid, created by a Placement client, is adopted with traits and holder.

        Args:
            columns: Values by column; the default provision state is ``enroll``.

        Raises:
            NodeUuidTaken, NodeNameTaken: Another node has the uuid or name.
        """
        if db.execute(_BY_UUID, {"uuid": uuid}).first() is not None:
            raise failures.NodeUuidTaken(uuid=uuid)
        if columns.get("name") is not None:
            _check_name(db, columns["name"])
        try:
            provider = LockedProvider.lock(db, uuid)
        except errors.ProviderNotFound:
            provider = LockedProvider.create(db, uuid=uuid, name=uuid)
        db.execute(sa.insert(baremetal_nodes).values({**_DEFAULTS, "uuid": uuid, **columns}))
        locked = cls(db, provider, Node.get(db, uuid))
        _note(db, None, locked.node)
        locked.align()
        return locked

    def update(self, *, details: Mapping[str, Any] | None = None, **columns: Any) -> None:
        """Write changed columns, and the inventory if it depends on them.

        Without changes, ``updated_at`` stays.

        Args:
            details: Entries of ``details`` to write; None removes an entry.  Other entries stay.
            columns: Values by column.  Use ``holding.reclassify`` to change the class.

        Raises:
            NodeNameTaken: Another node has the name.
        """
        old = self.node
        changed = {name: value for name, value in columns.items() if value != getattr(old, name)}
        if details is not None:
            merged = {name: value for name, value in {**old.details, **details}.items() if value is not None}
            if json_differs(merged, old.details):
                changed["details"] = merged
        if not changed:
            return
        if changed.get("name") is not None:
            _check_name(self._db, changed["name"])
        if "provision_state" in changed:
            changed.setdefault("provision_updated_at", utcnow())
        changed["updated_at"] = utcnow()
        self._db.execute(_UPDATE.values(changed), {"node": old.id})
        self.node = replace(old, **changed)
        _note(self._db, old, self.node)
        if _ALLOCATION_COLUMNS & changed.keys():
            self.align()

    def reclassify(self, resource_class: str | None, *, keep_old: bool = False) -> None:
        """Change the class of the node and the unit of its provider.

        Args:
            keep_old: Whether to keep the unit of the old class until the holder's allocation has moved.

        Raises:
            InventoryNotDeletable: The old unit is allocated.
        """
        old = self.node.inventory_class
        self.update(resource_class=resource_class)
        if self.node.inventory_class != old and not keep_old:
            self.remove_unit(old)

    def replace_traits(self, names: Iterable[str]) -> None:
        """Set the traits of the node.  Unknown traits that begin with CUSTOM_ are created.

        Raises:
            InvalidTrait: A custom trait has an invalid name.
            UnknownProviderTraits: A standard trait does not exist.
        """
        names = set(names)
        # In this transaction, so that a refused request creates no traits.
        for name in sorted(name for name in Trait.unknown_names(self._db, names) if name.startswith("CUSTOM_")):
            Trait.check_name(name)
            Trait.create(self._db, name)
        self.provider.replace_traits(names)

    def delete(self) -> None:
        """Delete the node with its provider.  The holder must already have been released.

        Raises:
            ProviderHasChildren, ProviderHasAllocations: A Placement client uses the provider.
        """
        self._db.execute(_DELETE, {"node": self.node.id})
        _note(self._db, self.node, None)
        self.provider.delete()

    # --- the unit ---

    def align(self, *, reserved: bool | None = None) -> None:
        """Write the inventory of the unit.

        A missing class is created in this transaction, so that a refused request creates no class.

        Args:
            reserved: Whether the unit is reserved; None to reserve it if the node is unavailable.
        """
        inventory = unit(self.node.resource_class, reserved=not self.node.available if reserved is None else reserved)
        ResourceClass.create(self._db, inventory.resource_class)
        self.provider.replace_inventories([inventory], keep_others=True)

    def remove_unit(self, inventory_class: str) -> None:
        """Remove the inventory of a former class of the node, if it exists.

        Raises:
            InventoryNotDeletable: The inventory is allocated.
        """
        if self.has_unit(inventory_class):
            self.provider.remove_inventory(inventory_class)

    def has_unit(self, inventory_class: str | None = None) -> bool:
        """Whether the provider has inventory of a class, by default of the class of the node."""
        unit_class = inventory_class or self.node.inventory_class
        return any(
            inventory.resource_class == unit_class
            for inventory in Inventory.of_provider(self._db, self.provider.record)
        )

    def set_holder(self, instance_uuid: str | None) -> None:
        """Record the holder in ``node`` after a claim, which has advanced the provider's generation."""
        self._provider = None
        allocation = self.node.allocation_uuid if instance_uuid == self.node.instance_uuid else None
        self.node = replace(self.node, instance_uuid=instance_uuid, allocation_uuid=allocation)


def _check_name(db: Transaction, name: str) -> None:
    """Raise NodeNameTaken if a node has the name; names are compared exactly."""
    if db.execute(_BY_NAME, {"name": name}).first() is not None:
        raise failures.NodeNameTaken(name=name)


def _note(db: Transaction, old: Node | None, new: Node | None) -> None:
    """Record the change of a node in the history."""
    changes: dict[Path, Pair] = {
        (name,): (getattr(old, name, None), getattr(new, name, None)) for name in _HISTORY_COLUMNS
    }
    old_details, new_details = old.details if old else {}, new.details if new else {}
    for name in sorted({*old_details, *new_details}):
        if json_differs(old_details.get(name), new_details.get(name)):
            mark = (_CHANGED if name in old_details else _PRESENT) if name in new_details else None
            changes["details", name] = _PRESENT if name in old_details else None, mark
    uuid = (old or new).uuid  # type: ignore[union-attr]
    db.note(_KIND, uuid, changes)


_N = baremetal_nodes.c
_BY_UUID = sa.select(_N.id).where(_N.uuid == sa.bindparam("uuid"))
_BY_NAME = sa.select(_N.id).where(_N.name == sa.bindparam("name"))
_BY_ID = _N.id == sa.bindparam("node")
_UPDATE = sa.update(baremetal_nodes).where(_BY_ID)
_DELETE = sa.delete(baremetal_nodes).where(_BY_ID)
