"""Removal of old events, from the lowest position up, and of old usage samples and shares (docs/adr/0042).

The newest transaction stays with its events, so that no position is used twice.
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

#: How many transactions' events one transaction removes: few, because requests wait the milliseconds that it takes.
BATCH = 100


class Pruned(NamedTuple):
    """What was removed, and what is left."""

    #: Events that were too old.
    old: int = 0
    #: Younger events, removed because there were too many.
    surplus: int = 0
    #: Events that are left, and the age in seconds of the oldest of them.
    left: int = 0
    oldest: float = 0.0
    #: Whether there may be more to remove.
    more: bool = False


def prune(db: Transaction, retention: datetime.timedelta, most: int) -> Pruned:
    """Remove samples that are too old, and a batch of the oldest events: those too old, or in excess of ``most``.

    Args:
        retention: How old events and samples may be.
        most: How many events there may be.

    Raises:
        Collision: Another process is removing them.
    """
    now: datetime.datetime = db.execute(sa.select(CLOCK)).scalar_one()
    before = now - retention
    for delete in _DELETE_SAMPLES:
        db.execute(delete, {"before": before})
    newest = db.execute(NEWEST_POSITION).first()
    if newest is None:
        return Pruned()
    rows = [*db.execute(_OLDEST, {"newest": newest.position, "most": BATCH + 1}), newest]
    end = newest.position + newest.events
    removed = _prefix(rows[:-1][:BATCH], before, end - most)
    # Positions have no gaps.
    oldest = rows[len(removed)]
    left, age = end - oldest.position, (now - oldest.at).total_seconds()
    if not removed:
        return Pruned(left=left, oldest=age)
    hold = _HOLD_FREE if db.skips_locked_rows else _HOLD
    if db.execute(hold, {"position": removed[-1].position}).first() is None:
        raise Collision  # another process is removing them, or has done so
    number = 0
    # A writer's earlier transactions have lower positions, so they are already removed, or are removed here.
    last = {row.writer_id: row.seq for row in removed}
    for writer, seq in sorted(last.items()):
        number += db.execute(_DELETE_EVENTS, {"writer": writer, "last": seq}).rowcount
    db.execute(_DELETE_ORDER, {"last": removed[-1].position})
    surplus = sum(row.events for row in removed if row.at >= before)
    return Pruned(number - surplus, surplus, left, age, len(removed) == BATCH)


def _prefix(rows: Sequence[Any], before: datetime.datetime, first: int) -> Sequence[Any]:
    """Return the rows before the first that is neither too old nor below a position."""
    for index, row in enumerate(rows):
        if row.at >= before and row.position >= first:
            return rows[:index]
    return rows


_OLDEST = (
    sa.select(event_order)
    .where(event_order.c.position < sa.bindparam("newest"))
    .order_by(event_order.c.position)
    .limit(sa.bindparam("most", type_=sa.Integer))
)
_NEWEST_OF_BATCH = sa.select(event_order.c.position).where(event_order.c.position == sa.bindparam("position"))
_HOLD, _HOLD_FREE = _NEWEST_OF_BATCH.with_for_update(), _NEWEST_OF_BATCH.with_for_update(skip_locked=True)
_DELETE_EVENTS = sa.delete(events).where(
    events.c.writer_id == sa.bindparam("writer"), events.c.seq <= sa.bindparam("last")
)
_DELETE_ORDER = sa.delete(event_order).where(event_order.c.position <= sa.bindparam("last"))
_DELETE_SAMPLES = (
    sa.delete(usage_samples).where(usage_samples.c.at < sa.bindparam("before")),
    sa.delete(usage_shares).where(usage_shares.c.at < sa.bindparam("before")),
)
