"""Releases: ending consumers, many in one transaction.

A consumer's row is locked before anything is decided: from then on no other transaction can change what it holds.
Providers are not locked, since giving back only makes room (placement/objects/claims/claim_set.py).
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

#: Consumers in one transaction; MariaDB turns a list of a thousand or more into a table.
BATCH = 500


def release(db: Transaction, uuids: Collection[str]) -> list[str]:
    """End the consumers that hold something, and return their uuids."""
    return _end_holding(db, Holding.lock(db, uuids))


def end_one(db: Transaction, uuid: str) -> None:
    """End a consumer, even one whose lease is over; raises NoAllocations if it holds nothing."""
    ending = [consumer for consumer in Holding.lock(db, [uuid]) if consumer.held_on]
    if not ending:
        raise errors.NoAllocations(uuid=uuid)
    end(db, ending)


def release_unchanged(db: Transaction, read: Iterable[Holding]) -> list[str]:
    """End the consumers that are still as they were when they were read, and return their uuids.

    Everything that was read is compared.  A uuid and a generation do not identify a consumer: if it ended and another
    project created it again, it begins with the same generation.  Nor does an id: SQLite reuses the highest one.
    """
    before = {holding.uuid: holding for holding in read}
    locked = Holding.lock(db, before)
    return _end_holding(db, [one for one in locked if one.is_what_it_was(before[one.uuid])])


def _end_holding(db: Transaction, locked: Collection[Holding]) -> list[str]:
    """End locked consumers that hold something.

    A consumer whose lease is over counts as holding nothing, as in every reply; it is given back as expired.
    """
    end_expired(db, locked)
    ending = [consumer for consumer in locked if consumer.held_on and not consumer.is_expired]
    end(db, ending)
    return [consumer.uuid for consumer in ending]


def end_expired(db: Transaction, locked: Collection[Holding]) -> int:
    """End the locked consumers whose lease is over, and return their number.

    The request that notices this did not ask for it, and may be another project's.
    """
    ending = [consumer for consumer in locked if consumer.is_expired]
    if ending:
        with author.acting_as(Author(api="placement", route="leases")):
            end(db, ending, reason="expired")
        db.on_commit(lambda: _publish_expired(len(ending)))
    return len(ending)


def _publish_expired(ended: int) -> None:
    LOG.info("Gave back what %d expired leases held.", ended)
    signals.leases_expired(ended)


def end(db: Transaction, ending: Collection[Holding], *, reason: str | None = None) -> None:
    """Delete locked consumers with everything they hold, and record it in the feed and the history.

    Locking the row would not be enough, because between Galera nodes a lock excludes nothing: of two transactions about
    one consumer, the later one is refused only if both have written its row (docs/adr/0012).

    Args:
        reason: For the history: why it ends, if nobody asked for it.
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
