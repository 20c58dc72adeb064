"""Leases: claims that expire, and whose allocations are then released.

The expiry is a time by the database's clock and is compared only with that clock, so the clocks of worker processes do
not matter.  A lease belongs to the consumer's row: it ends when the row is deleted, and a consumer that is created
again has none.

Every transaction that acts on an expiry writes the consumer's row, and reads the expiry under the lock of that row.  So
if an extension races with the release of an expired lease, exactly one takes effect, and a lease is released once
(ADR 39).
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db.schema.clock import CLOCK
from placement.db.schema.tables import LEASE_HAS_EXPIRED, allocations, claims, consumers, touch_parameters, touch_value
from placement.db.writes.notes import CONSUMER, Advance, Pair, Path
from placement.db.writes.transaction import Prerequisite, Reading, Transaction
from placement.objects.claims import release
from placement.objects.claims.consumer_notes import format_expiry
from placement.objects.claims.holding import Holding

#: The generation in claim records that contain only an expiry.  No consumer has it, so no mappings are shown.
_NO_GENERATION = -1


def now(db: Reading) -> datetime.datetime:
    """Return the current time by the database's clock: naive, UTC."""
    time: datetime.datetime = db.execute(_NOW).scalar_one()
    return time


def expiry_after(db: Reading, seconds: int | None) -> datetime.datetime | None:
    """Return the time ``seconds`` from now, for ``claims.expires_at``; None for no expiry."""
    return None if seconds is None else now(db) + datetime.timedelta(seconds=seconds)


def any_expired(db: Reading) -> bool:
    """Whether a lease has expired and is not released yet."""
    return db.execute(ANY_EXPIRED).first() is not None


def count_expired(db: Reading) -> int:
    """Return the number of leases that have expired and are not released yet."""
    return int(db.execute(_COUNT_EXPIRED).scalar_one())


def count_expiring(db: Reading, seconds: int) -> int:
    """Return the number of active leases that expire within ``seconds``."""
    return int(db.execute(_COUNT_EXPIRING, {"latest": expiry_after(db, seconds)}).scalar_one())


def release_expired(db: Transaction, limit: int = release.BATCH) -> int:
    """Release expired leases, at most ``limit``, in the order of their expiry; return their number.

    If the server supports it, consumers that another transaction has locked are skipped.
    """
    expired = db.execute(_EXPIRED, {"limit": min(limit, release.BATCH)})
    return _end_expired(db, expired.scalars().all(), skip_locked=True)


def require_none_expired_on(db: Transaction, providers: Collection[int]) -> None:
    """Raise Prerequisite if expired leases have allocations on these providers (ids).

    The attempt is then retried after their release.  Call it before a refusal that is due to allocations there.
    """
    if db.execute(_EXPIRED_ON, {"providers": sorted(providers), "limit": 1}).first() is not None:
        raise Prerequisite(lambda first: _release_on(first, providers))


def require_ended(expired: Collection[str]) -> None:
    """Raise Prerequisite: the attempt is retried after the release of these consumers, whose leases have expired."""
    raise Prerequisite(lambda first: _end_expired(first, expired, skip_locked=False))


def _release_on(db: Transaction, providers: Collection[int]) -> None:
    expired = db.execute(_EXPIRED_ON, {"providers": sorted(providers), "limit": release.BATCH})
    _end_expired(db, expired.scalars().all(), skip_locked=False)


def _end_expired(db: Transaction, uuids: Collection[str], *, skip_locked: bool) -> int:
    # Until this transaction got the lock, another one may have extended the lease.
    return release.end_expired(db, Holding.lock(db, uuids, skip_locked=skip_locked))


def extend(db: Transaction, consumer_uuid: str, seconds: int | None) -> None:
    """Set or clear the expiry of a consumer's claim, even if another implementation has placed it.

    Raises:
        NoAllocations: The consumer has no allocations, or its lease has expired.
    """
    is_locked = db.execute(_TOUCH, {"uuid_": consumer_uuid, **touch_parameters()}).rowcount
    before = Holding.read_all(db, [consumer_uuid]).get(consumer_uuid) if is_locked else None
    if before is None or not before.exists:
        raise errors.NoAllocations(uuid=consumer_uuid)
    expires_at = expiry_after(db, seconds)
    if db.has_history:
        changes: dict[Path, Pair] = {("lease",): (format_expiry(before.expires_at), format_expiry(expires_at))}
        advance = Advance(before.id, before.generation, before.generation)
        db.note(CONSUMER, consumer_uuid, changes, advance=advance, project=before.project)
    is_claimed = db.execute(_EXTEND, {"consumer": before.id, "expiry": expires_at}).rowcount
    if not is_claimed and expires_at is not None:
        record: dict[str, Any] = {
            "consumer_id": before.id,
            "generation": _NO_GENERATION,
            "mappings": [],
            "expires_at": expires_at,
        }
        db.execute(sa.insert(claims), record)


_C = claims.c
_NOW = sa.select(CLOCK)
_EXPIRED = (
    sa.select(consumers.c.uuid)
    .join(claims, _C.consumer_id == consumers.c.id)
    .where(LEASE_HAS_EXPIRED)
    .order_by(_C.expires_at, _C.consumer_id)
    .limit(sa.bindparam("limit"))
)
_EXPIRED_ON = _EXPIRED.where(
    sa.exists().where(
        allocations.c.consumer_id == consumers.c.uuid,
        allocations.c.resource_provider_id.in_(sa.bindparam("providers", expanding=True)),
    )
)
#: A query that returns one row if an expired lease exists.  The join leaves out records whose consumer is gone: on
#: SQLite, a process may have deleted it with foreign keys off.
ANY_EXPIRED = (
    sa.select(_C.consumer_id).join(consumers, _C.consumer_id == consumers.c.id).where(LEASE_HAS_EXPIRED).limit(1)
)
_COUNT_EXPIRED = ANY_EXPIRED.limit(None).with_only_columns(sa.func.count(), maintain_column_froms=True)
_COUNT_EXPIRING = (
    sa.select(sa.func.count())
    .select_from(claims)
    .join(consumers, _C.consumer_id == consumers.c.id)
    .where(sa.not_(LEASE_HAS_EXPIRED), _C.expires_at <= sa.bindparam("latest"))
)
_TOUCH = sa.update(consumers).where(consumers.c.uuid == sa.bindparam("uuid_")).values(updated_at=touch_value(consumers))
_SAME_CONSUMER = _C.consumer_id == sa.bindparam("consumer")
_EXTEND = sa.update(claims).where(_SAME_CONSUMER).values(expires_at=sa.bindparam("expiry"))
