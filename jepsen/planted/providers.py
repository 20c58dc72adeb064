"""Faults of providers: generations, trees, resource classes, names."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from jepsen.planted.faults import PAUSE, fault
from placement.db.engine.compiled import CompiledStatement
from placement.db.schema.tables import resource_providers
from placement.db.writes import names
from placement.db.writes.names import Name
from placement.handlers import provider as handler
from placement.objects import provider_rows, tree
from placement.objects.consumer import Consumer
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import GENERATION, ResourceProvider
from placement.objects.resource_class import ResourceClass


@fault
def provider_generation_not_compared() -> None:
    """The provider generation in a request is ignored."""
    lock = LockedProvider.lock.__func__
    LockedProvider.lock = classmethod(lambda cls, db, uuid, generation=None, **options: lock(cls, db, uuid, **options))


@fault
def provider_generation_not_raised() -> None:
    """A claim does not raise the generations of its providers."""
    advance = sa.update(resource_providers).where(provider_rows._HAS_ID)
    provider_rows._ADVANCE_ALL = CompiledStatement(
        advance.values(generation=GENERATION, updated_at=sa.bindparam("now")),
    )


def _subtree(db: Any, provider_id: int) -> set[int]:
    """Return the ids of a subtree, as ``tree._subtree`` does, even if there is a cycle."""
    children: dict[int | None, list[int]] = {}
    for row in db.execute(tree._MEMBERS, {"id_": provider_id}):
        children.setdefault(row.parent_provider_id, []).append(row.id)
    subtree, unexplored = set[int](), [provider_id]
    while unexplored:
        subtree.add(unexplored[-1])
        unexplored += [child for child in children.get(unexplored.pop(), ()) if child not in subtree]
    return subtree


@fault
def cycles_not_refused() -> None:
    """A provider can be moved below one of its descendants."""
    lock = tree._lock

    def without_parent(db: Any, ends: list[ResourceProvider]) -> Any:
        provider, root, subtree = lock(db, ends)
        return provider, root, subtree - {end.id for end in ends[1:]}

    tree._lock, tree._subtree = without_parent, _subtree


@fault
def roots_not_locked_by_moves() -> None:
    """A move locks the provider and its new parent, but neither root: two concurrent moves can create a cycle."""

    def lock(db: Any, ends: list[ResourceProvider]) -> Any:
        locked = {row.id: row for row in provider_rows.lock_all(db, {end.id for end in ends})}
        provider, *parent = tree._require_unmoved(ends, locked.values())
        root = provider if not parent else next(iter(ResourceProvider.of_ids(db, {parent[0].tree_id})))
        subtree = _subtree(db, provider.id)
        time.sleep(PAUSE)
        return provider, root, subtree

    tree._lock, tree._subtree = lock, _subtree
    provider_rows.touch = lambda db, ids: None


@fault
def root_not_locked_by_creation() -> None:
    """Creating a child locks only its parent, so the root of the tree can change meanwhile."""

    def lock_parent(db: Any, uuid: str) -> ResourceProvider | None:
        provider = ResourceProvider.find(db, uuid)
        if provider is not None:
            time.sleep(3 * PAUSE)
            provider_rows.lock_all(db, {provider.id})
        return provider

    tree._lock_with_root = lock_parent


@fault
def move_not_written() -> None:
    """Moving a provider only renames it."""

    def lock(cls: Any, db: Any, uuid: str, parent_uuid: str | None, **_: Any) -> LockedProvider:
        return LockedProvider.lock(db, uuid)

    LockedProvider.lock_and_move = classmethod(lock)


@fault
def name_not_written() -> None:
    """A provider that is renamed keeps its name."""
    LockedProvider.rename = lambda self, name: None


@fault
def root_omitted() -> None:
    """A list of providers omits the roots, unless it contains only roots."""
    find = handler.find_providers

    def find_children(provider_filter: Any, snapshot: Any) -> Any:
        slots = [*find(provider_filter, snapshot)]
        return [slot for slot in slots if snapshot.provider(slot).parent >= 0] or slots

    handler.find_providers = find_children


@fault
def leaves_omitted() -> None:
    """A list of the providers of a tree omits the newest leaf."""
    find = handler.find_providers

    def find_old(provider_filter: Any, snapshot: Any) -> Any:
        slots = [*find(provider_filter, snapshot)]
        newest = max((snapshot.provider(slot).id for slot in slots), default=0)
        parents = {snapshot.provider(slot).parent for slot in slots}
        return [slot for slot in slots if slot in parents or snapshot.provider(slot).id != newest or len(slots) == 1]

    handler.find_providers = find_old


@fault
def class_deleted_during_inventory_write() -> None:
    """Adding an inventory does not lock its resource class."""
    ResourceClass.pin = staticmethod(lambda db, ids: time.sleep(PAUSE))


@fault
def ids_remembered() -> None:
    """Cached ids of projects, users and consumer types stay in use after the database has lost their rows."""
    original, ids_by_name = Consumer.read_for_claims.__func__, dict[Name, int]()

    def read_unknown(cls: Any, db: Any, owners: Mapping[str, Any], providers: Collection[str]) -> Any:
        unknown = {
            uuid: owner and (None if ids_by_name.keys() >= {*owner.names} else owner) for uuid, owner in owners.items()
        }
        consumers, provider_ids = original(cls, db, unknown, providers)
        for uuid, owner in owners.items():
            if owner and unknown[uuid]:
                ids_by_name.update(names.find(db, owner.names))
            elif owner:
                consumers[uuid].columns = owner.columns(ids_by_name)
        return consumers, provider_ids

    Consumer.read_for_claims = classmethod(read_unknown)
