"""Changes of a provider, under the lock of its row.

Each method checks its conditions, writes, advances the generation and records the change in the feed.  No method does
only a part of this, so a caller cannot omit a step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.schema.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    utcnow,
)
from placement.db.writes import names
from placement.db.writes.notes import PROVIDER, Advance, Changes
from placement.db.writes.transaction import Transaction
from placement.objects import provider_rows, tree
from placement.objects.claims import leases
from placement.objects.inventory import AMOUNTS, Inventory
from placement.objects.provider import ResourceProvider
from placement.objects.resource_class import ResourceClass
from placement.objects.trait import Trait

#: Attempts to create, move or rename a provider.  An attempt collides if the provider or its parent was moved between
#: the read and the lock.  When 12 clients moved one provider without a pause, 10 attempts were too few for one in ten
#: moves, and 30 attempts for one in a thousand.
TREE_ATTEMPTS = 100


class LockedProvider:
    """A provider in the transaction that has locked its row.

    ``lock``, ``lock_all``, ``create`` and ``lock_and_move`` return it; it must not outlive the transaction.

    Attributes:
        record: The provider with all changes made by this object.
    """

    __slots__ = ("_db", "record")

    def __init__(self, db: Transaction, record: ResourceProvider) -> None:
        self._db = db
        self.record = record

    # --- locking ---

    @classmethod
    def lock(
        cls,
        db: Transaction,
        uuid: str,
        generation: int | None = None,
        *,
        missing: type[errors.NotFound] = errors.ProviderNotFound,
        conflict: type[errors.Conflict] = errors.ProviderGenerationConflict,
    ) -> Self:
        """Lock the provider with exactly this uuid, and return it.

        Args:
            generation: The generation that the client states; None if it states none.

        Raises:
            missing: No provider has the uuid.
            conflict: The provider has another generation.
        """
        record = provider_rows.lock(db, uuid)
        if record is None:
            raise missing(uuid=uuid)
        if generation is not None and generation != record.generation:
            raise conflict()
        return cls(db, record)

    @classmethod
    def lock_all(cls, db: Transaction, ids: Collection[int]) -> dict[str, Self]:
        """Lock the providers with these ids, in the order of the ids, and return the existing providers by uuid."""
        return {record.uuid: cls(db, record) for record in provider_rows.lock_all(db, ids)}

    @classmethod
    def create(cls, db: Transaction, *, uuid: str, name: str, parent_uuid: str | None = None) -> Self:
        """Insert a provider of generation 0, a root (``parent_uuid`` is None) or a child, and return it.

        Raises:
            ProviderNotCreated: The name or the parent is invalid.
            ProviderUuidTaken, ProviderNameTaken: Another provider has the uuid or the name.
        """
        return cls(db, tree.create(db, uuid=uuid, name=name, parent_uuid=parent_uuid))

    @classmethod
    def lock_and_move(cls, db: Transaction, uuid: str, parent_uuid: str | None, *, may_reparent: bool) -> Self:
        """Lock a provider and move it with its subtree: below another parent, or to be a root (None).

        Locking and moving are one step, because a move locks several rows in the order of their ids.

        Args:
            may_reparent: Whether a provider with a parent may be moved or made a root (docs: api-update-provider).

        Raises:
            ProviderNotFound: No provider has the uuid.
            ProviderNotSaved: The provider may not have this parent.
        """
        record = ResourceProvider.get(db, uuid)
        return cls(db, tree.lock_and_move(db, record, parent_uuid, may_reparent=may_reparent))

    # --- the provider itself ---

    def rename(self, name: str) -> None:
        """Rename the provider; the generation does not change.

        Raises:
            ProviderRenameTaken: Another provider has the name.
        """
        if name == self.record.name:
            return
        if any(row.id != self.record.id for row in self._db.execute(_NAMED, {"name": name})):
            raise errors.ProviderRenameTaken(name=name)
        self._db.execute(_RENAME, {"id_": self.record.id, "becomes": name})
        self._note({("name",): (self.record.name, name)})
        self._db.record_change(self.record.id, feed.SHAPE)
        self.record = replace(self.record, name=name, updated_at=utcnow())

    def delete(self) -> None:
        """Delete the provider with its inventories, traits and aggregates.

        Raises:
            ProviderHasChildren, ProviderHasAllocations: The provider is in use.
            Prerequisite: Expired leases have allocations on it.
        """
        provider_id = self.record.id
        if self._db.execute(_CHILD, {"id_": provider_id}).first() is not None:
            raise errors.ProviderHasChildren(uuid=self.record.uuid)
        if self._db.execute(_ALLOCATION, {"id_": provider_id}).first() is not None:
            leases.require_none_expired_on(self._db, [provider_id])
            raise errors.ProviderHasAllocations(uuid=self.record.uuid)
        self._note_deletion()
        for table in (inventories, resource_provider_traits, resource_provider_aggregates):
            self._db.execute(sa.delete(table).where(table.c.resource_provider_id == provider_id))
        # A root refers to itself by a foreign key, which some databases check before the row is gone.
        self._db.execute(_CLEAR_ROOT, {"id_": provider_id})
        self._db.execute(_DELETE, {"id_": provider_id})
        self._db.record_change(provider_id, feed.GONE)

    def _note_deletion(self) -> None:
        """Record the deletion in the history."""
        if not self._db.has_history:
            return
        record = self.record
        for inventory in Inventory.of_provider(self._db, record):
            self._note_inventory(inventory, None)
        self._note_members("traits", {trait.name for trait in Trait.of_provider(self._db, record)}, set())
        self._note_members("aggregates", self._aggregates(), set())
        gone: Changes = {("name",): (record.name, None), ("parent",): (record.parent_uuid, None)}
        self._db.note(PROVIDER, record.uuid, gone, advance=Advance(record.id, record.generation, None))

    # --- inventories ---

    def replace_inventories(self, records: Iterable[Inventory], *, keep_others: bool = False) -> None:
        """Replace the inventories of the provider.

        Args:
            records: One for each class.
            keep_others: Whether to keep inventories of other classes.

        Raises:
            UnknownResourceClass: A record is of a class that does not exist.
            InventoryInUse: An inventory to be removed has allocations.
            Prerequisite: Expired leases have allocations on the provider.
        """
        by_class = {record.resource_class: record for record in records}
        present = {record.resource_class: record for record in Inventory.of_provider(self._db, self.record)}
        new = {name: record for name, record in by_class.items() if name not in present}
        class_ids = ResourceClass.ids(self._db, new)
        if not keep_others:
            self._delete_inventories([record for name, record in present.items() if name not in by_class])
        for name, record in by_class.items():
            if name in present and record.columns != present[name].columns:
                self._update_inventory(present[name], record)
        self._insert_inventories(new, class_ids)
        self._advance()

    def add_inventory(self, record: Inventory) -> None:
        """Add an inventory of another class.

        Raises:
            UnknownResourceClass: The class does not exist.
            InventoryPresent: The provider has an inventory of the class.
        """
        class_ids = ResourceClass.ids(self._db, [record.resource_class])
        present = Inventory.of_provider(self._db, self.record)
        if any(inventory.resource_class == record.resource_class for inventory in present):
            raise errors.InventoryPresent(resource_class=record.resource_class, uuid=self.record.uuid)
        self._insert_inventories({record.resource_class: record}, class_ids)
        self._advance()

    def update_inventory(self, record: Inventory) -> None:
        """Replace the inventory of the same class.

        Raises:
            ResourceClassNotFound: The class does not exist.
            NoInventoryToUpdate: The provider has no inventory of the class.
        """
        ResourceClass.get(self._db, record.resource_class)
        present = Inventory.get(self._db, self.record, record.resource_class, errors.NoInventoryToUpdate)
        self._update_inventory(present, record)
        self._advance()

    def remove_inventory(self, resource_class: str) -> None:
        """Delete the inventory of one class.

        Raises:
            InventoryNotFoundForDelete: The provider has no inventory of the class.
            InventoryNotDeletable: The inventory has allocations.
        """
        present = Inventory.get(self._db, self.record, resource_class, errors.InventoryNotFoundForDelete)
        self._delete_inventories([present], errors.InventoryNotDeletable)
        self._advance()

    def _delete_inventories(
        self, records: Collection[Inventory], in_use: type[errors.Conflict] = errors.InventoryInUse
    ) -> None:
        if not records:
            return
        parameters = {"provider": self.record.id, "class_ids": [record.class_id for record in records]}
        allocated = set(self._db.execute(_ALLOCATED, parameters).scalars())
        if allocated:
            leases.require_none_expired_on(self._db, [self.record.id])
            classes = [record.resource_class for record in records if record.class_id in allocated]
            raise in_use(resource_classes=", ".join(classes), uuid=self.record.uuid)
        self._db.execute(_DELETE_INVENTORIES, parameters)
        for record in records:
            self._note_inventory(record, None)

    def _update_inventory(self, present: Inventory, record: Inventory) -> None:
        parameters = {"provider": self.record.id, "class_id": present.class_id}
        self._db.execute(_UPDATE_INVENTORY.values(record.columns), parameters)
        self._note_inventory(present, record)

    def _insert_inventories(self, records: Mapping[str, Inventory], class_ids: Mapping[str, int]) -> None:
        ResourceClass.pin(self._db, class_ids)
        rows = [
            {"resource_provider_id": self.record.id, "resource_class_id": class_ids[name], **record.columns}
            for name, record in records.items()
        ]
        if rows:
            self._db.execute(sa.insert(inventories), rows)
        for record in records.values():
            self._note_inventory(None, record)

    def _note_inventory(self, was: Inventory | None, becomes: Inventory | None) -> None:
        if not self._db.has_history:
            return
        name = (was or becomes).resource_class  # type: ignore[union-attr]
        before, after = was.columns if was else {}, becomes.columns if becomes else {}
        self._note({("inventories", name, field): (before.get(field), after.get(field)) for field in AMOUNTS})

    # --- traits and aggregates ---

    def replace_traits(self, trait_names: Iterable[str]) -> None:
        """Replace the traits of the provider; the generation does not change if the traits do not.

        Raises:
            UnknownProviderTraits: Some traits do not exist; the failure names all of them.
        """
        new_names = set(trait_names)
        ids = Trait.ids(self._db, new_names)
        unknown = sorted(new_names - ids.keys())
        if unknown:
            raise errors.UnknownProviderTraits(names=", ".join(unknown))
        present = {trait.name: trait.id for trait in Trait.of_provider(self._db, self.record)}
        self._note_members("traits", set(present), new_names)
        if self._replace_members(resource_provider_traits.c.trait_id, set(present.values()), set(ids.values())):
            self._advance()

    def replace_aggregates(self, uuids: Collection[str], *, advance: bool = True) -> None:
        """Replace the aggregates of the provider.

        Args:
            advance: Whether to advance the generation; up to version 1.18 it does not change (docs: api-aggregates).
        """
        named = [names.Name(names.AGGREGATE, uuid) for uuid in uuids]
        # No foreign key refers to an aggregate, so the transaction that uses its id has to look it up.
        new = set(names.ensure(self._db, named, names.find(self._db, named)).values())
        present = set(self._db.execute(_AGGREGATE_IDS, {"provider": self.record.id}).scalars())
        if self._db.has_history:
            self._note_members("aggregates", self._aggregates(), set(uuids))
        if self._replace_members(resource_provider_aggregates.c.aggregate_id, present, new):
            self._db.record_change(self.record.id, feed.SHAPE)
        if advance:
            self._advance()
        else:
            provider_rows.touch(self._db, [self.record.id])

    def _aggregates(self) -> set[str]:
        """Return the uuids of the provider's aggregates."""
        return set(self._db.execute(_AGGREGATE_UUIDS, {"provider": self.record.id}).scalars())

    def _replace_members(self, member: sa.Column[int], present: set[int], new: set[int]) -> bool:
        """Replace the provider's traits or aggregates, and return whether they changed.

        Args:
            member: The column of the trait, or of the aggregate, in the association table.
            present: Ids before.
            new: Ids afterwards.
        """
        table = member.table
        if present - new:
            of_provider = table.c.resource_provider_id == self.record.id
            self._db.execute(sa.delete(table).where(of_provider, member.in_(list(present - new))))
        rows = [{"resource_provider_id": self.record.id, member.name: id_} for id_ in sorted(new - present)]
        if rows:
            self._db.execute(sa.insert(table), rows)
        return present != new

    def _advance(self) -> None:
        self.record = provider_rows.advance(self._db, self.record)

    # --- the history ---

    def _note(self, changes: Changes) -> None:
        self._db.note(PROVIDER, self.record.uuid, changes)

    def _note_members(self, kind: str, present: Collection[str], new: Collection[str]) -> None:
        self._note({(kind, name): (name in present, name in new) for name in sorted({*present} ^ {*new})})


_P, _I, _A = resource_providers.c, inventories.c, allocations.c
_THIS = _P.id == sa.bindparam("id_")
_NAMED = sa.select(_P.id).where(_P.name == sa.bindparam("name"))
_RENAME = sa.update(resource_providers).where(_THIS).values(name=sa.bindparam("becomes"))
_CHILD = sa.select(_P.id).where(_P.parent_provider_id == sa.bindparam("id_")).limit(1)
_ALLOCATION = sa.select(_A.id).where(_A.resource_provider_id == sa.bindparam("id_")).limit(1)
_CLEAR_ROOT = sa.update(resource_providers).where(_THIS).values(root_provider_id=None)
_DELETE = sa.delete(resource_providers).where(_THIS)
_CLASSES: sa.BindParameter[Any] = sa.bindparam("class_ids", expanding=True)
_ALLOCATED = (
    sa.select(_A.resource_class_id)
    .where(_A.resource_provider_id == sa.bindparam("provider"), _A.resource_class_id.in_(_CLASSES))
    .distinct()
)
_INVENTORIES_OF = _I.resource_provider_id == sa.bindparam("provider")
_DELETE_INVENTORIES = sa.delete(inventories).where(_INVENTORIES_OF, _I.resource_class_id.in_(_CLASSES))
_UPDATE_INVENTORY = sa.update(inventories).where(_INVENTORIES_OF, _I.resource_class_id == sa.bindparam("class_id"))
_AGGREGATE_IDS = sa.select(resource_provider_aggregates.c.aggregate_id).where(
    resource_provider_aggregates.c.resource_provider_id == sa.bindparam("provider")
)
_AGGREGATE_UUIDS = (
    sa.select(placement_aggregates.c.uuid)
    .join(resource_provider_aggregates, resource_provider_aggregates.c.aggregate_id == placement_aggregates.c.id)
    .where(resource_provider_aggregates.c.resource_provider_id == sa.bindparam("provider"))
)
