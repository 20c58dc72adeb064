"""Termination of feed writers with expired leases, whose processes have ended or stalled (ADR 4)."""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from placement.db import feed
from placement.db.schema.tables import change_writers, provider_changes
from placement.db.writes.transaction import Transaction


def end(db: Transaction, cutoff: datetime.datetime) -> None:
    """End the writers last seen before ``cutoff``.

    The transaction itself gets a sequence number.  So every state after the end of a writer contains a number of a
    living writer that no earlier state contains.  By this number, a reader notices that the database returned to
    an earlier state.  The ended writers cannot show it, because their rows are deleted eventually.
    """
    for writer_id in db.execute(feed.EXPIRED, {"cutoff": cutoff}).scalars().all():
        _end_writer(db, writer_id, cutoff)
    db.record_change(feed.NO_PROVIDER, feed.NAMES)


def _end_writer(db: Transaction, writer_id: int, cutoff: datetime.datetime) -> None:
    """End a writer; its newest row is kept, under the negated id.

    The lock waits for a transaction of the writer that is about to commit, so the number read afterwards is the
    writer's last: from then on the foreign key refuses its rows (fencing).  A reader with a lower number for this
    writer has missed a transaction.
    """
    if db.execute(_LOCK, {"writer": writer_id, "cutoff": cutoff}).first() is None:
        return  # the writer has renewed its lease meanwhile
    if writer_id > 0:
        newest = db.execute(_NEWEST, {"writer": writer_id}).scalar() or 0
        db.execute(feed.PRUNE, {"writer": writer_id, "newest": newest})
        db.execute(sa.insert(change_writers).values(id=-writer_id))
        db.execute(_MOVE, {"writer": writer_id, "ended": -writer_id})
    else:  # it was ended at least ``feed.LIFETIME`` ago
        db.execute(_CLEAR, {"writer": writer_id})
    db.execute(_DELETE, {"writer": writer_id})


_THIS = change_writers.c.id == sa.bindparam("writer")
_LOCK = sa.select(change_writers.c.id).where(_THIS, change_writers.c.seen_at < sa.bindparam("cutoff")).with_for_update()
_DELETE = sa.delete(change_writers).where(_THIS)
_OF_WRITER = provider_changes.c.writer_id == sa.bindparam("writer")
_NEWEST = sa.select(sa.func.max(provider_changes.c.seq)).where(_OF_WRITER)
_MOVE = sa.update(provider_changes).where(_OF_WRITER).values(writer_id=sa.bindparam("ended"))
_CLEAR = sa.delete(provider_changes).where(_OF_WRITER)
