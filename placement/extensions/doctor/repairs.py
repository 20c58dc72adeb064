"""Changes that only fixes make: to trees, to consumers that hold nothing, and to allocations of what does not exist.

As in the objects that serve requests, each locks what it decides about, and records the change in the feed and in the
history.
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


def correct_roots(db: Transaction, most: int) -> int:
    """Give providers whose root is missing or wrong the root that follows from their parents.

    What is below a loop, or below a provider whose parent does not exist, stays as it is.  The rows of the providers,
    of all their ancestors and of the roots that they have now are locked: nothing moves, and nothing is created below
    them, until the transaction ends.  Generations stay, as in a move.

    Args:
        most: The most providers to correct.

    Returns:
        The number of providers that were corrected.

    Raises:
        Collision: A tree was changed since it was read.
    """
    found = Lineage.read(db)
    wrong = sorted({*found.rootless, *found.wrong})[:most]
    wanted = {*wrong, *(ancestor for one in wrong for ancestor in found.above(one))}
    wanted |= {root for one in wrong if (root := found.roots[one]) in found.roots and root is not None}
    _lock_as_read(db, found, wanted)
    provider_rows.touch(db, wanted)
    _note_roots(db, {one: (found.roots[one], found.right[one]) for one in wrong})
    for root, members in itertools.groupby(sorted(wrong, key=found.right.__getitem__), found.right.__getitem__):
        db.execute(_SET_ROOT, {"ids": list(members), "root": root})
    for provider_id in wrong:
        db.changed(provider_id, feed.SHAPE)
    return len(wrong)


def cut_orphans(db: Transaction, most: int) -> int:
    """Turn providers whose parent does not exist into roots, which is how searches already treat them.

    Nothing else can change them: ``provider_rows.lock_all`` collides on such rows.  The roots of what is below them
    are not corrected here.

    Args:
        most: The most providers to change.

    Returns:
        The number of providers that were changed.

    Raises:
        Collision: A tree was changed since it was read.
    """
    found = Lineage.read(db)
    orphans = found.orphans[:most]
    _lock_as_read(db, found, orphans)
    _note_roots(db, {one: (found.roots[one], one) for one in orphans}, reason="no parent")
    if orphans:
        db.execute(_MAKE_ROOTS, {"ids": list(orphans), "now": utcnow()})
    for provider_id in orphans:
        db.changed(provider_id, feed.SHAPE)
    return len(orphans)


def _note_roots(db: Transaction, roots: Mapping[int, tuple[int | None, int]], reason: str | None = None) -> None:
    """Note for the history which roots providers get.

    Args:
        roots: By the id of a provider, the root that its row has and the one that it gets.
        reason: Why, if it is not that the root was wrong.
    """
    if not db.has_history:
        return
    ids = {*roots, *(id_ for pair in roots.values() for id_ in pair if id_ is not None)}
    uuids: dict[int | None, str] = {row.id: row.uuid for row in db.execute(_UUIDS, {"ids": sorted(ids)})} if ids else {}
    for provider_id, (old, new) in roots.items():
        changes: Changes = {("root",): (uuids.get(old), uuids.get(new)), ("reason",): (None, reason)}
        db.note(PROVIDER, uuids[provider_id], changes)


def _lock_as_read(db: Transaction, found: Lineage, ids: Collection[int]) -> None:
    """Lock providers in the order of their ids; raises Collision if a parent or a root is not as it was read.

    Unlike those of ``provider_rows.lock_all``, the rows may refer to providers that do not exist.
    """
    rows = db.execute(_LOCK_ENDS, {"ids": sorted(ids)}) if ids else ()
    locked = {row.id: (row.parent_provider_id, row.root_provider_id) for row in rows}
    if locked != {one: (found.parents[one], found.roots[one]) for one in ids}:
        raise Collision


def delete_idle(db: Transaction, uuids: Collection[str]) -> int:
    """Delete the rows of those consumers that hold nothing, and return their number.

    Their rows are locked, so none of them comes to hold something meanwhile.
    """
    idle = [consumer for consumer in Holding.lock(db, uuids) if not consumer.held_on]
    for consumer in idle:
        reason: Changes = {("reason",): (None, "idle")}
        db.note(CONSUMER, consumer.uuid, reason, advance=Advance(consumer.id, consumer.generation, None))
    release.end(db, idle)
    return len(idle)


def release_lost(db: Transaction, uuids: Collection[str]) -> int:
    """Delete what consumers hold of providers and custom classes that do not exist; return how many held such.

    A consumer that holds nothing else ends.  The rows of consumers are written first, as by claims, and created for the
    length of the transaction where there is none.
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
    """Delete what these consumers hold of providers and of custom classes that do not exist, and record it in the feed.

    What they hold of a standard class stays: its row can come back with the same id (placement/db/upkeep/standard.py).

    Returns:
        The consumers that held such.
    """
    lost = db.execute(_LOST, {"consumers": list(consumers)}).all()
    for consumer, provider_id, class_id in lost:
        db.execute(_DELETE, {"consumer": consumer, "provider": provider_id, "class_": class_id})
        db.changed(provider_id, feed.USAGE)
    # Some collations find a consumer in another case, too.
    return sorted({row.consumer_id for row in lost} & {*consumers})


_P, _A = resource_providers.c, allocations.c
_PROVIDERS = _P.id.in_(sa.bindparam("ids", expanding=True))
_UUIDS = sa.select(_P.id, _P.uuid).where(_PROVIDERS)
_LOCK_ENDS = sa.select(_P.id, _P.parent_provider_id, _P.root_provider_id).where(_PROVIDERS).order_by(_P.id)
_LOCK_ENDS = _LOCK_ENDS.with_for_update(key_share=True)
_SET_ROOT = sa.update(resource_providers).where(_PROVIDERS).values(root_provider_id=sa.bindparam("root"))
_MAKE_ROOTS = (
    sa.update(resource_providers)
    .where(_PROVIDERS)
    .values(parent_provider_id=None, root_provider_id=_P.id, updated_at=sa.bindparam("now"))
)
_NO_PROVIDER = ~sa.exists().where(_P.id == _A.resource_provider_id)
_NO_CLASS = ~sa.exists().where(resource_classes.c.id == _A.resource_class_id)
#: Whether an allocation is of a provider, or of a custom class, that does not exist.
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
