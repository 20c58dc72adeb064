"""Releases: ending consumers, many in one transaction.

A consumer's row is locked first, so that other transactions cannot change its allocations.  Providers are not locked,
because a release only frees capacity (placement/objects/claims/claim_set.py).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

import sqlalchemy as sa

from placement import errors, signals
from placement.db.schema.tables import consumers
from placement.db.writes import author
from placement.db.writes.author import Author
from placement.db.writes.transaction import Transaction
from placement.objects.claims import allocation_rows
from placement.objects.claims.consumer_notes import note_end
from placement.objects.claims.holding import Holding

LOG = logging.getLogger(__name__)

#: Consumers per transaction, whose statements list all of them; ``placement.db.batches.BATCH_SIZE`` is the maximum.
BATCH = 500


def release(db: Transaction, uuids: Collection[str]) -> list[str]:
    """End the consumers that have allocations, and return their uuids."""
    return _end_holding(db, Holding.lock(db, uuids))


def end_consumer(db: Transaction, uuid: str) -> None:
    """End a consumer, even one whose lease has expired; raise NoAllocations if it has no allocations."""
    ending = [consumer for consumer in Holding.lock(db, [uuid]) if consumer.held_on]
    if not ending:
        raise errors.NoAllocations(uuid=uuid)
    end(db, ending)


def release_unchanged(db: Transaction, holdings: Iterable[Holding]) -> list[str]:
    """End the consumers that have not changed since they were read, and return their uuids.

    All fields are compared, because neither uuid and generation nor the id identify a consumer.  A consumer
    that has ended and that another project has created again starts with the same generation; and SQLite reuses the
    highest id.
    """
    before = {holding.uuid: holding for holding in holdings}
    locked = Holding.lock(db, before)
    return _end_holding(db, [holding for holding in locked if holding.is_unchanged_since(before[holding.uuid])])


def _end_holding(db: Transaction, locked: Collection[Holding]) -> list[str]:
    """End the locked consumers with allocations, and return their uuids.

    A consumer whose lease has expired counts as absent, as in every response, and is released as expired.
    """
    end_expired(db, locked)
    ending = [consumer for consumer in locked if consumer.held_on and not consumer.is_expired]
    end(db, ending)
    return [consumer.uuid for consumer in ending]


def end_expired(db: Transaction, locked: Collection[Holding]) -> int:
    """End the locked consumers whose lease has expired, and return their number.

    The request that notices them is not recorded as the author: it may belong to another project.
    """
    ending = [consumer for consumer in locked if consumer.is_expired]
    if ending:
        with author.acting_as(Author(api="placement", route="leases")):
            end(db, ending, reason="expired")
        db.on_commit(lambda: _publish_expired(len(ending)))
    return len(ending)


def _publish_expired(ended: int) -> None:
    LOG.info("Released %d expired leases.", ended)
    signals.leases_expired(ended)


def end(db: Transaction, ending: Collection[Holding], *, reason: str | None = None) -> None:
    """Delete locked consumers with their allocations, and record it in the feed and the history.

    Locks are not replicated between Galera nodes: of two transactions about one consumer, the later one fails
    certification only if both have written its row (docs/adr/0012).

    Args:
        reason: The reason for the history, if no request ended them.
    """
    if not ending:
        return
    if db.has_history:
        for consumer in ending:
            if consumer.held_on:
                note_end(db, consumer, reason=reason)
    allocation_rows.delete_all(db, ending)
    db.execute(_DELETE_ROWS, {"ids": sorted(consumer.id for consumer in ending if consumer.id is not None)})


_DELETE_ROWS = sa.delete(consumers).where(consumers.c.id.in_(sa.bindparam("ids", expanding=True)))
