"""Moves: a provider goes below another parent, with everything that is below it.

The row of a root stands for the form of its tree: births and moves lock it, and read the tree under that lock.  All
rows are locked in the order of their ids, the root's among them, so what a move will write is read once before the
locks, too (docs/adr/0003).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.tables import resource_providers, utcnow
from placement.db.transaction import Collision, Reading, Transaction
from placement.objects.provider import ResourceProvider


def move(db: Transaction, provider: ResourceProvider, parent_uuid: str | None, *, freely: bool) -> ResourceProvider:
    """The provider, now locked, below another parent or as a root (None), with everything below it.

    The provider is given as it was read.  Unless ``freely``, only a root can be given a parent (contract 2.4).
    """
    if parent_uuid == provider.parent_uuid:
        (locked,) = _as_read([provider], ResourceProvider.lock_all(db, [provider.uuid]).values())
        return locked
    parent = _find_parent(db, provider, parent_uuid, freely)
    ends = [provider] if parent is None else [provider, parent]
    provider, root, subtree = _lock(db, ends)
    if parent is not None and parent.id in subtree:
        raise _refused(provider, "creating loop in the provider tree is not allowed.")
    ResourceProvider.touch(db, {place for one in ends for place in (one.id, one.top)})
    db.execute(_SET_PARENT, {"id_": provider.id, "parent": None if parent is None else parent.id})
    db.execute(_SET_ROOT, {"ids": sorted(subtree), "root": root.id})
    for provider_id in subtree:
        db.changed(provider_id, feed.SHAPE)
    return replace(
        provider,
        parent_id=None if parent is None else parent.id,
        parent_uuid=parent_uuid,
        root_id=root.id,
        root_uuid=root.uuid,
        updated_at=utcnow(),
    )


def _find_parent(
    db: Reading, provider: ResourceProvider, parent_uuid: str | None, freely: bool
) -> ResourceProvider | None:
    """The provider's parent to be, None if it is to be a root; raises ProviderNotSaved if it may not be."""
    if parent_uuid is None:
        if not freely:
            raise _refused(provider, "un-parenting a provider is not currently allowed.")
        return None
    parent = ResourceProvider.find(db, parent_uuid)
    if parent is None:
        raise _refused(provider, "parent provider UUID does not exist.")
    if provider.parent_uuid is not None and not freely:
        raise _refused(provider, "re-parenting a provider is not currently allowed.")
    return parent


def _refused(provider: ResourceProvider, reason: str) -> errors.Failure:
    return errors.ProviderNotSaved(uuid=provider.uuid, reason=reason)


def _lock(db: Transaction, ends: list[ResourceProvider]) -> tuple[ResourceProvider, ResourceProvider, set[int]]:
    """The provider that moves, the root it will have, and the ids of it and all below it, for good.

    ``ends`` are the provider and its parent to be, if there is one.  Raises Collision if they are not as they were
    read.
    """
    moving = ends[0].id
    wanted = _subtree(db, moving).union(*((one.id, one.top) for one in ends))
    locked = {one.id: one for one in ResourceProvider.lock_all(db, (), wanted).values()}
    provider, *parent = _as_read(ends, locked.values())
    # The roots are locked: nothing is born any more, and nothing moves.
    subtree = _subtree(db, moving)
    late = subtree - wanted
    if late and min(late) < max(wanted):
        raise Collision  # its turn among the locks is over
    ResourceProvider.lock_all(db, (), late)
    return provider, locked[parent[0].top] if parent else provider, subtree


def _as_read(wanted: Iterable[ResourceProvider], found: Collection[ResourceProvider]) -> list[ResourceProvider]:
    """These providers as they are now that they are locked; raises Collision if one has gone or has moved."""
    now = {one.id: one for one in found}
    for one in wanted:
        if one.id not in now or (now[one.id].parent_id, now[one.id].root_id) != (one.parent_id, one.root_id):
            raise Collision
    return [now[one.id] for one in wanted]


def _subtree(db: Reading, provider_id: int) -> set[int]:
    """The ids of the provider and of everything below it."""
    children: dict[int | None, list[int]] = {}
    for row in db.execute(_MEMBERS, {"id_": provider_id}):
        children.setdefault(row.parent_provider_id, []).append(row.id)
    found = [provider_id]
    for parent_id in found:
        found.extend(children.get(parent_id, ()))
    return set(found)


_P = resource_providers.c
_ITS_ROOT = (
    sa.select(sa.func.coalesce(_P.root_provider_id, _P.id)).where(_P.id == sa.bindparam("id_")).scalar_subquery()
)
#: One statement, so that the root and the members of its tree are of one moment.
_MEMBERS = sa.select(_P.id, _P.parent_provider_id).where(_P.root_provider_id == _ITS_ROOT)
_SET_PARENT = sa.update(resource_providers).where(_P.id == sa.bindparam("id_"))
_SET_PARENT = _SET_PARENT.values(parent_provider_id=sa.bindparam("parent"))
_SET_ROOT = sa.update(resource_providers).where(_P.id.in_(sa.bindparam("ids", expanding=True)))
_SET_ROOT = _SET_ROOT.values(root_provider_id=sa.bindparam("root"))
