"""Locks on the rows of providers, and the statements that advance generations.

Only locked providers, trees, claim sets and the doctor's repairs use this module.  Every change of a provider locks its
row first, so changes of one provider are serialized.  A transaction that locks several rows locks them in the order of
their ids, so concurrent transactions wait for each other and do not deadlock (docs/adr/0003).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from placement.db import feed
from placement.db.engine.compiled import CompiledStatement
from placement.db.schema.tables import resource_providers, touch_parameters, touch_value, utcnow
from placement.db.writes.notes import PROVIDER, Advance
from placement.db.writes.transaction import Collision, Transaction
from placement.objects.provider import GENERATION, SELECT, ResourceProvider


def lock(db: Transaction, uuid: str) -> ResourceProvider | None:
    """Lock the provider with exactly this uuid until the transaction ends, and return it, or None."""
    # Some collations also match a uuid in another case.
    rows = [row for row in db.execute(_LOCK_BY_UUID, {"uuid": uuid}) if row.uuid == uuid]
    return next(iter(_locked_providers(rows)), None)


def lock_all(db: Transaction, ids: Collection[int]) -> list[ResourceProvider]:
    """Lock the providers with these ids until the transaction ends, and return them in the order of the ids.

    By id rather than by uuid: a database locks rows in the order in which it reads them.
    """
    return _locked_providers(db.execute(_LOCK_BY_ID, {"ids": sorted(ids)})) if ids else []


def _locked_providers(rows: Iterable[Any]) -> list[ResourceProvider]:
    """Return the providers of locked rows.

    Raises:
        Collision: A row may be older than its lock.  After it has waited for a lock, PostgreSQL reads the row again,
            but evaluates subqueries in the state at the start of the statement: they do not see a parent or root that
            was created in between.
    """
    providers = [ResourceProvider(*row) for row in rows]
    for provider in providers:
        resolved = provider.root_uuid is not None, provider.parent_uuid is not None
        if resolved != (provider.root_id is not None, provider.parent_id is not None):
            raise Collision
    return providers


def advance(db: Transaction, provider: ResourceProvider) -> ResourceProvider:
    """Advance the generation by one, record it in the feed and the history, and return the provider.

    Raises:
        Collision: The row has another generation than the record, which was not read under the lock.
    """
    generation, updated_at = provider.generation + 1, utcnow()
    values = {"id_": provider.id, "was": provider.generation, "becomes": generation, "now": updated_at}
    if db.execute(_ADVANCE, values).rowcount != 1:
        raise Collision
    db.record_change(provider.id, feed.SHAPE)
    db.note(PROVIDER, provider.uuid, {}, advance=Advance(provider.id, provider.generation, generation))
    return replace(provider, generation=generation, updated_at=updated_at)


def advance_for_usage(db: Transaction, ids: Collection[int], optional: Collection[int] = ()) -> None:
    """Lock these providers and advance their generations by one, because their usage changes.

    Args:
        ids: Providers that must exist.
        optional: Providers that may have been deleted; another implementation may leave their allocations.

    Raises:
        Collision: One of ``ids`` has been deleted.
    """
    advanced = {*ids, *optional}
    if not advanced:
        return
    parameters = {"ids": sorted(advanced)}
    if len(advanced) > 1:
        # An UPDATE locks rows in the order in which it reads them.
        db.execute(_LOCK, parameters)
    if db.execute(_ADVANCE_ALL, parameters | {"now": utcnow()}).rowcount != len(advanced):
        advanced &= {provider.id for provider in ResourceProvider.of_ids(db, advanced)}
        if not advanced.issuperset(ids):
            raise Collision
    for provider_id in advanced:
        # After a change of this kind, a reader reads only the generation and the usage again.
        db.record_change(provider_id, feed.USAGE)


def lock_for_usage(db: Transaction, ids: Mapping[str, int], *, skip_locked: bool = False) -> dict[str, int]:
    """Lock providers and return their generations by uuid.

    Args:
        ids: Ids by uuid.  A provider is left out if it does not exist, or if another provider has reused its id.
        skip_locked: Whether to skip providers that other transactions have locked, where the server supports it.
    """
    if not ids:
        return {}
    statement = _LOCK_SKIPPING if skip_locked and db.skips_locked_rows else _LOCK
    rows = db.execute(statement, {"ids": sorted(ids.values())})
    return {row.uuid: row.generation for row in rows if ids.get(row.uuid) == row.id}


def advance_locked(db: Transaction, ids: Collection[int]) -> None:
    """Advance the generations of these locked providers by one, because their usage changes."""
    if ids:
        db.execute(_ADVANCE_ALL, {"ids": sorted(ids), "now": utcnow()})
    for provider_id in ids:
        db.record_change(provider_id, feed.USAGE)


def touch(db: Transaction, ids: Collection[int]) -> None:
    """Write the dates of these locked rows, for a transaction that relies on them without changing them.

    Locks are not replicated between Galera nodes: of two transactions, the later one fails certification only if both
    have written the same row (docs/adr/0012).
    """
    db.execute(_TOUCH, {"ids": sorted(ids), **touch_parameters()})


_P = resource_providers
_HAS_ID = _P.c.id.in_(sa.bindparam("ids", expanding=True))
# Ids never change, so PostgreSQL can take a weaker lock (key_share): inserts of rows that refer to this one by foreign
# key do not wait for it, and cannot deadlock with it.
_LOCK_BY_UUID = SELECT.where(_P.c.uuid == sa.bindparam("uuid")).with_for_update(of=_P, key_share=True)
_LOCK_BY_ID = SELECT.where(_HAS_ID).order_by(_P.c.id).with_for_update(of=_P, key_share=True)
_ROWS = sa.select(_P.c.id, _P.c.uuid, GENERATION.label("generation")).where(_HAS_ID).order_by(_P.c.id)
_LOCK = CompiledStatement(_ROWS.with_for_update(key_share=True))
_LOCK_SKIPPING = CompiledStatement(_ROWS.with_for_update(key_share=True, skip_locked=True))
_ADVANCE = (
    sa.update(_P)
    .where(_P.c.id == sa.bindparam("id_"), sa.bindparam("was") == GENERATION)
    .values(generation=sa.bindparam("becomes"), updated_at=sa.bindparam("now"))
)
_ADVANCE_ALL = CompiledStatement(
    sa.update(_P).where(_HAS_ID).values(generation=GENERATION + 1, updated_at=sa.bindparam("now"))
)
_TOUCH = sa.update(_P).where(_HAS_ID).values(updated_at=touch_value(_P))
