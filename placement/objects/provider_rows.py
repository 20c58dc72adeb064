"""Locks on the rows of providers, and the statements that advance generations.

Only locked providers, trees, claim sets and the doctor's repairs use this module.  Every change of a provider locks its
row first, so that all changes of one provider happen one after another; a transaction that locks several rows locks
them in the order of their ids, so that concurrent transactions wait for each other and do not deadlock
(docs/adr/0003).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from placement.db import feed
from placement.db.engine.compiled import CompiledStatement
from placement.db.schema.tables import resource_providers, touch_of, touched, utcnow
from placement.db.writes.notes import PROVIDER, Advance
from placement.db.writes.transaction import Collision, Transaction
from placement.objects.provider import GENERATION, SELECT, ResourceProvider


def lock(db: Transaction, uuid: str) -> ResourceProvider | None:
    """The provider with exactly this uuid, its row locked until the transaction ends, or None."""
    # Some collations find a uuid in another case, too.
    rows = [row for row in db.execute(_LOCK_BY_UUID, {"uuid": uuid}) if row.uuid == uuid]
    return next(iter(_as_locked(rows)), None)


def lock_all(db: Transaction, ids: Collection[int]) -> list[ResourceProvider]:
    """The providers that have these ids, locked until the transaction ends, in the order of the ids.

    By id and not by uuid: a database locks rows in the order in which it finds them.
    """
    return _as_locked(db.execute(_LOCK_BY_ID, {"ids": sorted(ids)})) if ids else []


def _as_locked(rows: Iterable[Any]) -> list[ResourceProvider]:
    """The providers of locked rows.

    Raises:
        Collision: A row may be older than its lock.  PostgreSQL waits for a lock and then reads the row anew, but rows
            of subqueries as of the beginning of the statement: a parent or root that was created while the statement
            waited is not visible to it.
    """
    providers = [ResourceProvider(*row) for row in rows]
    for provider in providers:
        found = provider.root_uuid is not None, provider.parent_uuid is not None
        if found != (provider.root_id is not None, provider.parent_id is not None):
            raise Collision
    return providers


def advance(db: Transaction, provider: ResourceProvider) -> ResourceProvider:
    """The provider, one generation on, recorded in the feed with everything that was written about it.

    Raises:
        Collision: The row has another generation than the record; then the record was not of a locked row.
    """
    generation, updated_at = provider.generation + 1, utcnow()
    values = {"id_": provider.id, "was": provider.generation, "becomes": generation, "now": updated_at}
    if db.execute(_ADVANCE, values).rowcount != 1:
        raise Collision
    db.changed(provider.id, feed.SHAPE)
    db.note(PROVIDER, provider.uuid, {}, advance=Advance(provider.id, provider.generation, generation))
    return replace(provider, generation=generation, updated_at=updated_at)


def advance_for_usage(db: Transaction, ids: Collection[int], optional: Collection[int] = ()) -> None:
    """Lock these providers and advance their generations by one, because their usage changes.

    Args:
        ids: Providers that have to exist.
        optional: Providers that need not exist: another implementation may have left allocations of deleted ones.

    Raises:
        Collision: One of ``ids`` has been deleted.
    """
    both = {*ids, *optional}
    if not both:
        return
    among = {"ids": sorted(both)}
    if len(both) > 1:
        # An UPDATE takes its locks in the order in which it finds the rows.
        db.execute(_LOCK, among)
    if db.execute(_ADVANCE_ALL, among | {"now": utcnow()}).rowcount != len(both):
        both &= {provider.id for provider in ResourceProvider.of_ids(db, both)}
        if not both.issuperset(ids):
            raise Collision
    for provider_id in both:
        # A reader of this kind of change reads generation and usage, and nothing else, again.
        db.changed(provider_id, feed.USAGE)


def lock_for_usage(db: Transaction, ids: Mapping[str, int], *, skip_locked: bool = False) -> dict[str, int]:
    """Lock providers and return their generations by uuid.

    Args:
        ids: By uuid.  A provider whose id another one has by now is left out, as one that does not exist.
        skip_locked: Whether to leave out providers that other transactions have locked, where the server can do so.
    """
    if not ids:
        return {}
    statement = _LOCK_FREE if skip_locked and db.skips_locked_rows else _LOCK
    rows = db.execute(statement, {"ids": sorted(ids.values())})
    return {row.uuid: row.generation for row in rows if ids.get(row.uuid) == row.id}


def advance_locked(db: Transaction, ids: Collection[int]) -> None:
    """Advance the generations of these locked providers by one, because their usage changes."""
    if ids:
        db.execute(_ADVANCE_ALL, {"ids": sorted(ids), "now": utcnow()})
    for provider_id in ids:
        db.changed(provider_id, feed.USAGE)


def touch(db: Transaction, ids: Collection[int]) -> None:
    """Write the dates of these locked rows, for a transaction that relies on them and changes nothing else of them.

    Between Galera nodes a lock excludes nothing: of two transactions the later one is refused only where both have
    written the same row (docs/adr/0012).
    """
    db.execute(_TOUCH, {"ids": sorted(ids), **touched()})


_P = resource_providers
_AMONG = _P.c.id.in_(sa.bindparam("ids", expanding=True))
# Ids never change.  PostgreSQL knows a weaker lock for this case: inserts of rows that refer to this one by foreign key
# need not wait for it, and cannot deadlock with it.
_LOCK_BY_UUID = SELECT.where(_P.c.uuid == sa.bindparam("uuid")).with_for_update(of=_P, key_share=True)
_LOCK_BY_ID = SELECT.where(_AMONG).order_by(_P.c.id).with_for_update(of=_P, key_share=True)
_ROWS = sa.select(_P.c.id, _P.c.uuid, GENERATION.label("generation")).where(_AMONG).order_by(_P.c.id)
_LOCK = CompiledStatement(_ROWS.with_for_update(key_share=True))
_LOCK_FREE = CompiledStatement(_ROWS.with_for_update(key_share=True, skip_locked=True))
_ADVANCE = (
    sa.update(_P)
    .where(_P.c.id == sa.bindparam("id_"), sa.bindparam("was") == GENERATION)
    .values(generation=sa.bindparam("becomes"), updated_at=sa.bindparam("now"))
)
_ADVANCE_ALL = CompiledStatement(
    sa.update(_P).where(_AMONG).values(generation=GENERATION + 1, updated_at=sa.bindparam("now"))
)
_TOUCH = sa.update(_P).where(_AMONG).values(updated_at=touch_of(_P))
