"""Changes that only fixes make: to trees, to idle consumers, and to allocations of missing providers and classes.

Like the objects that serve requests, each function locks the rows on which its decision depends, and records its
changes in the change feed and the history.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping

import sqlalchemy as sa

from placement.db import feed
from placement.db.schema.tables import allocations, resource_classes, resource_providers, utcnow
from placement.db.upkeep.standard import FIRST_CUSTOM_ID
from placement.db.writes.notes import CONSUMER, PROVIDER, Advance, Changes
from placement.db.writes.transaction import Collision, Transaction
from placement.extensions.doctor.lineage import Lineage
from placement.objects import provider_rows
from placement.objects.claims import release
from placement.objects.claims.consumer_notes import note_end
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Consumer


def correct_roots(db: Transaction, limit: int) -> int:
    """Set missing and wrong roots to the roots that follow from the parents.

    Providers below a loop, or below a provider whose parent does not exist, are not changed.  The rows of the
    providers, all their ancestors and their stored roots are locked.  Until the transaction ends, no such provider
    moves, and no provider is created below it.  Generations do not change, as in a move.

    Args:
        limit: The maximum number of providers to correct.

    Returns:
        The number of providers corrected.

    Raises:
        Collision: A tree has changed since it was read.
    """
    lineage = Lineage.read(db)
    wrong = sorted({*lineage.rootless, *lineage.misrooted})[:limit]
    ids = {*wrong, *(ancestor for provider_id in wrong for ancestor in lineage.ancestors(provider_id))}
    ids |= {root for root in map(lineage.roots.__getitem__, wrong) if root is not None and root in lineage.roots}
    _lock_unchanged(db, lineage, ids)
    provider_rows.touch(db, ids)
    _note_roots(db, {provider_id: (lineage.roots[provider_id], lineage.implied[provider_id]) for provider_id in wrong})
    for root, members in itertools.groupby(sorted(wrong, key=lineage.implied.__getitem__), lineage.implied.__getitem__):
        db.execute(_SET_ROOT, {"ids": list(members), "root": root})
    for provider_id in wrong:
        db.record_change(provider_id, feed.SHAPE)
    return len(wrong)


def cut_orphans(db: Transaction, limit: int) -> int:
    """Turn providers whose parent does not exist into roots, as searches already treat them.

    Only this function can change such rows: ``provider_rows.lock_all`` collides on them.  The roots of the providers
    below them are left to ``correct_roots``.

    Args:
        limit: The maximum number of providers to change.

    Returns:
        The number of providers changed.

    Raises:
        Collision: A tree has changed since it was read.
    """
    lineage = Lineage.read(db)
    orphans = lineage.orphans[:limit]
    _lock_unchanged(db, lineage, orphans)
    _note_roots(db, {orphan: (lineage.roots[orphan], orphan) for orphan in orphans}, reason="no parent")
    if orphans:
        db.execute(_MAKE_ROOTS, {"ids": list(orphans), "now": utcnow()})
    for provider_id in orphans:
        db.record_change(provider_id, feed.SHAPE)
    return len(orphans)


def _note_roots(db: Transaction, roots: Mapping[int, tuple[int | None, int]], reason: str | None = None) -> None:
    """Note changes of roots for the history.

    Args:
        roots: The ids of the old and the new root, by the id of the provider.
        reason: The reason; None if the stored root was wrong.
    """
    if not db.has_history:
        return
    ids = {*roots, *(root for pair in roots.values() for root in pair if root is not None)}
    uuids: dict[int | None, str] = {row.id: row.uuid for row in db.execute(_UUIDS, {"ids": sorted(ids)})} if ids else {}
    for provider_id, (old, new) in roots.items():
        changes: Changes = {("root",): (uuids.get(old), uuids.get(new)), ("reason",): (None, reason)}
        db.note(PROVIDER, uuids[provider_id], changes)


def _lock_unchanged(db: Transaction, lineage: Lineage, ids: Collection[int]) -> None:
    """Lock providers in the order of their ids; raise Collision if a parent or a root has changed since the read.

    Unlike in ``provider_rows.lock_all``, the rows may refer to providers that do not exist.
    """
    rows = db.execute(_LOCK, {"ids": sorted(ids)}) if ids else ()
    locked = {row.id: (row.parent_provider_id, row.root_provider_id) for row in rows}
    if locked != {provider_id: (lineage.parents[provider_id], lineage.roots[provider_id]) for provider_id in ids}:
        raise Collision


def delete_idle(db: Transaction, uuids: Collection[str]) -> int:
    """Delete the rows of these consumers that hold nothing, and return their number.

    The rows are locked first, so that no concurrent claim allocates resources to these consumers.
    """
    idle = [consumer for consumer in Holding.lock(db, uuids) if not consumer.held_on]
    for consumer in idle:
        reason: Changes = {("reason",): (None, "idle")}
        db.note(CONSUMER, consumer.uuid, reason, advance=Advance(consumer.id, consumer.generation, None))
    release.end(db, idle)
    return len(idle)


def release_lost(db: Transaction, uuids: Collection[str]) -> int:
    """Delete allocations of providers and custom classes that do not exist.

    A consumer that holds nothing else is deleted.  As in a claim, the rows of consumers are written first; a missing
    row is created for the length of the transaction.

    Returns:
        The number of consumers that had such allocations.
    """
    if not uuids:
        return 0
    Consumer.lock_named(db, uuids)
    before = Holding.read_all(db, uuids) if db.has_history else {}
    lost = _delete_lost(db, uuids)
    Consumer.delete_created(db, uuids)
    ending = [consumer for consumer in Holding.lock(db, lost) if not consumer.held_on]
    release.end(db, ending)
    if before:
        ended = {consumer.uuid for consumer in ending}
        for uuid in lost:
            if uuid in ended:
                note_end(db, before[uuid], reason="lost")
            else:
                db.note(CONSUMER, uuid, {("reason",): (None, "lost")}, project=before[uuid].project)
    return len(lost)


def _delete_lost(db: Transaction, consumers: Collection[str]) -> list[str]:
    """Delete allocations of providers and custom classes that do not exist, and record that in the change feed.

    Allocations of standard classes stay: the row of a standard class can be inserted again with the same id
    (placement/db/upkeep/standard.py).

    Returns:
        The uuids of the consumers that had such allocations.
    """
    lost = db.execute(_LOST, {"consumers": list(consumers)}).all()
    for consumer, provider_id, class_id in lost:
        db.execute(_DELETE, {"consumer": consumer, "provider": provider_id, "class_": class_id})
        db.record_change(provider_id, feed.USAGE)
    # Some collations ignore case, and also match other consumers.
    return sorted({row.consumer_id for row in lost} & {*consumers})


_P, _A = resource_providers.c, allocations.c
_PROVIDERS = _P.id.in_(sa.bindparam("ids", expanding=True))
_UUIDS = sa.select(_P.id, _P.uuid).where(_PROVIDERS)
_LOCK = sa.select(_P.id, _P.parent_provider_id, _P.root_provider_id).where(_PROVIDERS).order_by(_P.id)
_LOCK = _LOCK.with_for_update(key_share=True)
_SET_ROOT = sa.update(resource_providers).where(_PROVIDERS).values(root_provider_id=sa.bindparam("root"))
_MAKE_ROOTS = (
    sa.update(resource_providers)
    .where(_PROVIDERS)
    .values(parent_provider_id=None, root_provider_id=_P.id, updated_at=sa.bindparam("now"))
)
_NO_PROVIDER = ~sa.exists().where(_P.id == _A.resource_provider_id)
_NO_CLASS = ~sa.exists().where(resource_classes.c.id == _A.resource_class_id)
#: Condition for allocations of a provider or a custom class that does not exist.
IS_LOST = _NO_PROVIDER | ((_A.resource_class_id >= FIRST_CUSTOM_ID) & _NO_CLASS)
_LOST = (
    sa.select(_A.consumer_id, _A.resource_provider_id, _A.resource_class_id)
    .distinct()
    .where(_A.consumer_id.in_(sa.bindparam("consumers", expanding=True)), IS_LOST)
)
_DELETE = sa.delete(allocations).where(
    _A.consumer_id == sa.bindparam("consumer"),
    _A.resource_provider_id == sa.bindparam("provider"),
    _A.resource_class_id == sa.bindparam("class_"),
)
