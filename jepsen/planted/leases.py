"""Faults of leases: expiry, extensions and the resources of expired leases."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import threading
import time
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from jepsen.planted.faults import PAUSE, fault
from placement.db.schema.tables import claims, consumers
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.v1.claims import claim_record, engine
from placement.extensions.v1.claims.claim_record import ClaimRecord, held_claims
from placement.extensions.v1.handlers import claim as handler
from placement.objects.claims import leases, release
from placement.objects.claims.holding import Holding
from placement.objects.claims.lease_sweep import LeaseSweeper

#: Seconds that an extension takes, in which its lease may expire.
_EXTENSION_DELAY = 0.5
#: Placeholder for the holding of a consumer without allocations.
_NOTHING = object()
_SECOND = datetime.timedelta(seconds=1)


@fault
def lease_shorter_than_reported() -> None:
    """The written expiry of a lease is a second before the reported one."""
    insert_all = ClaimRecord.insert_all.__func__

    def insert_shorter(cls: Any, db: Any, records: Any) -> None:
        ends = [record.expires_at and record.expires_at - _SECOND for record in records]
        shorter = [dataclasses.replace(record, expires_at=end) for record, end in zip(records, ends, strict=True)]
        insert_all(cls, db, shorter)

    ClaimRecord.insert_all = classmethod(insert_shorter)


@fault
def all_swept_when_one_expires() -> None:
    """A sweep ends all leases, including active ones."""
    leases._EXPIRED = (
        sa.select(consumers.c.uuid)
        .join(claims, claims.c.consumer_id == consumers.c.id)
        .where(claims.c.expires_at.is_not(None))
        .limit(sa.bindparam("limit"))
    )
    _sweep_without_recheck()


def _sweep_without_recheck(delay: float = 0) -> None:
    """Make sweeps end all candidates, without checking the expiry again under the locks."""

    def end_all(db: Transaction, uuids: Collection[str], *, skip_locked: bool) -> int:
        time.sleep(delay if uuids else 0)
        ending = Holding.lock(db, uuids, skip_locked=skip_locked)
        release.end(db, ending)
        return len(ending)

    leases._end_expired = end_all


@fault
def swept_during_extension() -> None:
    """A sweep does not check the expiry of a lease again once it gets the lock that an extension held."""
    extend = leases.extend

    def extend_late(db: Transaction, consumer_uuid: str, seconds: int | None) -> None:
        extend(db, consumer_uuid, seconds)
        time.sleep(_EXTENSION_DELAY)

    leases.extend = extend_late
    _sweep_without_recheck(PAUSE)
    # Otherwise the sweep would skip the locked rows.
    Transaction.skips_locked_rows = property(lambda self: False)


def _sweep_for_claims_only() -> None:
    """Sweep expired leases only if a claim needs their resources, so that requests encounter more of them."""
    LeaseSweeper.sweep = lambda self: False


@fault
def shown_after_expiry() -> None:
    """The v1 API shows expired claims until they are swept."""
    _sweep_for_claims_only()

    def read_even_expired(db: Reading, uuids: Collection[str]) -> dict[str, Holding]:
        holdings = Holding.read_all(db, uuids, with_record=True)
        return {uuid: holding for uuid, holding in holdings.items() if holding.id is not None}

    claim_record.held_claims = engine.held_claims = handler.held_claims = read_even_expired


@fault
def extended_after_expiry() -> None:
    """An expired lease can be extended until it is swept."""
    _sweep_for_claims_only()

    class NeverExpired(Holding):
        @classmethod
        def read_all(cls, db: Reading, uuids: Collection[str]) -> dict[str, Holding]:
            holdings = Holding.read_all(db, uuids)
            for holding in holdings.values():
                holding.is_expired = False
            return holdings

    leases.Holding = NeverExpired


@fault
def stalled_extension_answered_with_404() -> None:
    """An extension is committed but gets the response 404 if its transaction took longer than the new lease.

    Every third extension by one second takes that long.
    """
    extend, numbers = leases.extend, itertools.count(1)

    def extend_late(db: Transaction, consumer_uuid: str, seconds: int | None) -> None:
        extend(db, consumer_uuid, seconds)
        if seconds == 1 and next(numbers) % 3 == 0:
            time.sleep(seconds + 10 * PAUSE)

    def read_or_nothing(db: Reading, uuids: Collection[str]) -> dict[str, Any]:
        return {**dict.fromkeys(uuids, _NOTHING), **held_claims(db, uuids)}

    present = handler._present
    handler._present = lambda req, holding, consumer: present(req, None if holding is _NOTHING else holding, consumer)
    leases.extend, handler.held_claims = extend_late, read_or_nothing


@fault
def extension_not_written() -> None:
    """An extension reports the new expiry, but the old one stays."""
    extend, local = leases.extend, threading.local()

    def extend_and_undo(db: Transaction, consumer_uuid: str, seconds: int | None) -> None:
        with db._connection.begin_nested() as undone:
            extend(db, consumer_uuid, seconds)
            local.extended = consumer_uuid, leases.expiry_after(db, seconds)
            undone.rollback()

    def read_as_extended(db: Reading, uuids: Collection[str]) -> dict[str, Holding]:
        holdings = held_claims(db, uuids)
        uuid, end = local.__dict__.pop("extended", (None, None))
        if uuid in holdings:
            holdings[uuid].expires_at = end
        return holdings

    leases.extend, handler.held_claims = extend_and_undo, read_as_extended


@fault
def expiry_lost_by_move() -> None:
    """Moving a consumer removes its expiry, although the request does not say so."""
    replace = ClaimRecord.replace
    ClaimRecord.replace = lambda self, db, *, keep_expiry: replace(self, db, keep_expiry=False)


@fault
def expired_lease_keeps_capacity() -> None:
    """An expired lease is released only once its consumer claims again."""
    _sweep_for_claims_only()
    leases.require_none_expired_on = lambda db, providers: None
