"""Trees of providers: creating a provider, and moving a provider with its subtree.

Only locked providers use this module.  Creations and moves lock the row of the root, which protects the structure of
the tree, and read the tree under that lock.  All rows are locked in the order of their ids, so a move also reads the
subtree before it locks anything (docs/adr/0011).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.schema.tables import resource_providers, utcnow
from placement.db.writes.notes import PROVIDER, Advance, Changes
from placement.db.writes.transaction import Collision, Reading, Transaction
from placement.objects import provider_rows
from placement.objects.provider import ResourceProvider


def create(db: Transaction, *, uuid: str, name: str, parent_uuid: str | None) -> ResourceProvider:
    """Insert a provider of generation 0, a root (``parent_uuid`` is None) or a child, and return it.

    Raises:
        ProviderNotCreated: The name or the parent is invalid.
        ProviderUuidTaken, ProviderNameTaken: Another provider has the uuid or the name.
    """

    def refusal(reason: str) -> errors.Failure:
        return errors.ProviderNotCreated(name=name, uuid=uuid, reason=reason)

    if not name:
        raise refusal("name is required")
    if parent_uuid == uuid:
        raise refusal(
            "parent provider UUID cannot be same as UUID. "
            "Please set parent provider UUID to None if there is no parent."
        )
    parent = None if parent_uuid is None else _lock_with_root(db, parent_uuid)
    if parent_uuid is not None and parent is None:
        raise refusal("parent provider UUID does not exist.")
    for provider in db.execute(_TAKEN, {"uuid": uuid, "name": name}):
        # The uuid is reported first: a client whose uuid is taken reads that provider, one whose name is taken fails.
        if provider.uuid.lower() == uuid.lower():
            raise errors.ProviderUuidTaken(uuid=uuid)
        raise errors.ProviderNameTaken(name=name)
    return _insert(db, uuid, name, parent)


def _lock_with_root(db: Transaction, uuid: str) -> ResourceProvider | None:
    """Lock the rows of a provider and of its root, in the order of their ids; return the provider, or None.

    On MySQL the foreign key of the new child also locks the root's row, but always after the parent's.

    Raises:
        Collision: The provider was moved to another tree, whose root is not locked, since it was read.
    """
    unlocked = ResourceProvider.find(db, uuid)
    if unlocked is None:
        return None
    rows = provider_rows.lock_all(db, {unlocked.id, unlocked.tree_id})
    locked = next((provider for provider in rows if provider.id == unlocked.id), None)
    if locked is not None and locked.root_id != unlocked.root_id:
        raise Collision
    return locked


def _insert(db: Transaction, uuid: str, name: str, parent: ResourceProvider | None) -> ResourceProvider:
    created_at = utcnow()
    row = {"uuid": uuid, "name": name, "generation": 0, "created_at": created_at}
    if parent is not None:
        provider_rows.touch(db, [parent.id])
        row |= {"parent_provider_id": parent.id, "root_provider_id": parent.tree_id}
    key = db.execute(sa.insert(resource_providers).values(row)).inserted_primary_key
    assert key is not None
    if parent is None:
        db.execute(_SET_ROOT, {"ids": [key[0]], "root": key[0]})
    db.record_change(key[0], feed.SHAPE)
    parent_uuid = None if parent is None else parent.uuid
    changes: Changes = {("name",): (None, name), ("parent",): (None, parent_uuid)}
    db.note(PROVIDER, uuid, changes, advance=Advance(key[0], None, 0))
    return ResourceProvider(
        id=key[0],
        uuid=uuid,
        name=name,
        generation=0,
        root_id=key[0] if parent is None else parent.tree_id,
        parent_id=None if parent is None else parent.id,
        root_uuid=uuid if parent is None else parent.root_uuid or parent.uuid,
        parent_uuid=parent_uuid,
        created_at=created_at,
        updated_at=None,
    )


def lock_and_move(
    db: Transaction, provider: ResourceProvider, parent_uuid: str | None, *, may_reparent: bool
) -> ResourceProvider:
    """Lock a provider and move it, with its subtree, below another parent; None makes it a root.

    Args:
        provider: The provider, as read.
        may_reparent: Whether a provider with a parent may be moved or made a root (docs: api-update-provider).

    Raises:
        ProviderNotSaved: The provider may not have this parent.
        Collision: The provider or its new parent was moved or deleted since it was read.
    """
    if parent_uuid == provider.parent_uuid:
        (locked,) = _require_unmoved([provider], provider_rows.lock_all(db, [provider.id]))
        return locked
    parent = _find_parent(db, provider, parent_uuid, may_reparent)
    provider, root, subtree = _lock(db, [provider] if parent is None else [provider, parent])
    if parent is not None and parent.id in subtree:
        raise _refusal(provider, "creating loop in the provider tree is not allowed.")
    ends = [provider] if parent is None else [provider, parent]
    provider_rows.touch(db, {id_ for record in ends for id_ in (record.id, record.tree_id)})
    db.execute(_SET_PARENT, {"id_": provider.id, "parent": None if parent is None else parent.id})
    db.execute(_SET_ROOT, {"ids": sorted(subtree), "root": root.id})
    for provider_id in subtree:
        db.record_change(provider_id, feed.SHAPE)
    db.note(PROVIDER, provider.uuid, {("parent",): (provider.parent_uuid, parent_uuid)})
    return replace(
        provider,
        parent_id=None if parent is None else parent.id,
        parent_uuid=parent_uuid,
        root_id=root.id,
        root_uuid=root.uuid,
        updated_at=utcnow(),
    )


def _find_parent(
    db: Reading, provider: ResourceProvider, parent_uuid: str | None, may_reparent: bool
) -> ResourceProvider | None:
    """Return the provider's new parent, or None if it becomes a root; raise ProviderNotSaved for an invalid move."""
    if parent_uuid is None:
        if not may_reparent:
            raise _refusal(provider, "un-parenting a provider is not currently allowed.")
        return None
    parent = ResourceProvider.find(db, parent_uuid)
    if parent is None:
        raise _refusal(provider, "parent provider UUID does not exist.")
    if provider.parent_uuid is not None and not may_reparent:
        raise _refusal(provider, "re-parenting a provider is not currently allowed.")
    return parent


def _refusal(provider: ResourceProvider, reason: str) -> errors.Failure:
    return errors.ProviderNotSaved(uuid=provider.uuid, reason=reason)


def _lock(db: Transaction, ends: list[ResourceProvider]) -> tuple[ResourceProvider, ResourceProvider, set[int]]:
    """Lock all rows that a move reads or writes.

    Args:
        ends: The ends of the new edge: the provider to move, and its new parent if it has one, as read.

    Returns:
        The provider, its new root, and the ids of its subtree, itself included.  They cannot change until the
        transaction ends.

    Raises:
        Collision: One of ``ends`` was moved or deleted, or a new member of the subtree cannot be locked in order.
    """
    moving = ends[0].id
    ids = _subtree(db, moving).union(*((end.id, end.tree_id) for end in ends))
    locked = {provider.id: provider for provider in provider_rows.lock_all(db, ids)}
    provider, *parent = _require_unmoved(ends, locked.values())
    # With both roots locked, no provider can be created in these trees, or moved.
    subtree = _subtree(db, moving)
    new_members = subtree - ids
    if new_members and min(new_members) < max(ids):
        raise Collision
    provider_rows.lock_all(db, new_members)
    return provider, locked[parent[0].tree_id] if parent else provider, subtree


def _require_unmoved(
    unlocked: Iterable[ResourceProvider], locked: Collection[ResourceProvider]
) -> list[ResourceProvider]:
    """Return the locked records of providers; raise Collision if one was moved or deleted since it was read."""
    by_id = {provider.id: provider for provider in locked}
    for provider in unlocked:
        current = by_id.get(provider.id)
        if current is None or (current.parent_id, current.root_id) != (provider.parent_id, provider.root_id):
            raise Collision
    return [by_id[provider.id] for provider in unlocked]


def _subtree(db: Reading, provider_id: int) -> set[int]:
    """Return the ids of the provider and of its descendants."""
    children: dict[int | None, list[int]] = {}
    for row in db.execute(_MEMBERS, {"id_": provider_id}):
        children.setdefault(row.parent_provider_id, []).append(row.id)
    subtree, remaining = {provider_id}, [provider_id]
    while remaining:
        # Another implementation may have written a cycle of parents.
        unvisited = set(children.get(remaining.pop(), ())) - subtree
        subtree |= unvisited
        remaining += unvisited
    return subtree


_P = resource_providers.c
_TAKEN = (
    sa.select(_P.uuid, _P.name)
    .where((_P.uuid == sa.bindparam("uuid")) | (_P.name == sa.bindparam("name")))
    .order_by(sa.case((_P.uuid == sa.bindparam("uuid"), 0), else_=1))
)
_ROOT_OF = sa.select(sa.func.coalesce(_P.root_provider_id, _P.id)).where(_P.id == sa.bindparam("id_")).scalar_subquery()
#: The members of a provider's tree; one statement, so that they are consistent with the root.
_MEMBERS = sa.select(_P.id, _P.parent_provider_id).where(_P.root_provider_id == _ROOT_OF)
_SET_PARENT = sa.update(resource_providers).where(_P.id == sa.bindparam("id_"))
_SET_PARENT = _SET_PARENT.values(parent_provider_id=sa.bindparam("parent"))
_SET_ROOT = sa.update(resource_providers).where(_P.id.in_(sa.bindparam("ids", expanding=True)))
_SET_ROOT = _SET_ROOT.values(root_provider_id=sa.bindparam("root"))
