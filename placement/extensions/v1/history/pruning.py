"""Removal of old events, from the lowest position up, and of old usage samples and shares (docs/adr/0042).

The newest transaction and its events are kept, so that no position is used twice.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement.db.schema.clock import CLOCK
from placement.db.writes.transaction import Collision, Transaction
from placement.extensions.v1.history.order import NEWEST_POSITION
from placement.extensions.v1.history.tables import event_order, events, usage_samples, usage_shares

#: Transactions per batch: few, because requests wait for the removal.
BATCH = 100


class Pruned(NamedTuple):
    """The result of removing one batch."""

    #: Events removed because of their age.
    old: int = 0
    #: Younger events removed because their number exceeded the maximum.
    surplus: int = 0
    #: Remaining events, and the age of the oldest one in seconds.
    remaining: int = 0
    oldest: float = 0.0
    #: Whether another batch may follow.
    more: bool = False


def prune(db: Transaction, retention: datetime.timedelta, max_events: int) -> Pruned:
    """Remove old samples, and one batch of the oldest events that exceed the age or the number.

    Args:
        retention: The maximum age of events and samples.
        max_events: The maximum number of events.

    Raises:
        Collision: Another process is removing the same events.
    """
    now: datetime.datetime = db.execute(sa.select(CLOCK)).scalar_one()
    before = now - retention
    for delete in _DELETE_SAMPLES:
        db.execute(delete, {"before": before})
    newest = db.execute(NEWEST_POSITION).first()
    if newest is None:
        return Pruned()
    rows = [*db.execute(_OLDEST, {"newest": newest.position, "limit": BATCH + 1}), newest]
    end = newest.position + newest.events
    removed = _prefix(rows[:-1][:BATCH], before, end - max_events)
    oldest = rows[len(removed)]
    # Positions have no gaps.
    remaining, age = end - oldest.position, (now - oldest.at).total_seconds()
    if not removed:
        return Pruned(remaining=remaining, oldest=age)
    lock = _LOCK_OR_SKIP if db.skips_locked_rows else _LOCK
    if db.execute(lock, {"position": removed[-1].position}).first() is None:
        raise Collision  # another process is removing these events, or has removed them
    deleted = 0
    # Earlier transactions of a writer have lower positions, so they are part of this batch or already removed.
    last = {row.writer_id: row.seq for row in removed}
    for writer, seq in sorted(last.items()):
        deleted += db.execute(_DELETE_EVENTS, {"writer": writer, "last": seq}).rowcount
    db.execute(_DELETE_ORDER, {"last": removed[-1].position})
    surplus = sum(row.events for row in removed if row.at >= before)
    return Pruned(deleted - surplus, surplus, remaining, age, len(removed) == BATCH)


def _prefix(rows: Sequence[Any], before: datetime.datetime, first: int) -> Sequence[Any]:
    """Return the leading rows that are older than ``before`` or below the position ``first``."""
    for index, row in enumerate(rows):
        if row.at >= before and row.position >= first:
            return rows[:index]
    return rows


_OLDEST = (
    sa.select(event_order)
    .where(event_order.c.position < sa.bindparam("newest"))
    .order_by(event_order.c.position)
    .limit(sa.bindparam("limit", type_=sa.Integer))
)
_NEWEST_OF_BATCH = sa.select(event_order.c.position).where(event_order.c.position == sa.bindparam("position"))
_LOCK, _LOCK_OR_SKIP = _NEWEST_OF_BATCH.with_for_update(), _NEWEST_OF_BATCH.with_for_update(skip_locked=True)
_DELETE_EVENTS = sa.delete(events).where(
    events.c.writer_id == sa.bindparam("writer"), events.c.seq <= sa.bindparam("last")
)
_DELETE_ORDER = sa.delete(event_order).where(event_order.c.position <= sa.bindparam("last"))
_DELETE_SAMPLES = (
    sa.delete(usage_samples).where(usage_samples.c.at < sa.bindparam("before")),
    sa.delete(usage_shares).where(usage_shares.c.at < sa.bindparam("before")),
)
