"""Faults of the change feed and of the index that follows it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from jepsen.planted.faults import fault
from placement.db import feed
from placement.db.writes.transaction import Transaction
from placement.index import refresh
from placement.index.live import LiveIndex
from placement.index.position import Position

#: Maximum age of a snapshot, in seconds.
_MAX_AGE = 0.3


@fault
def usage_not_in_the_feed() -> None:
    """A claim writes no row to the change feed."""
    changed = Transaction.record_change

    def without_usage(self: Transaction, provider_id: int, kind: str) -> None:
        if kind != feed.USAGE:
            changed(self, provider_id, kind)

    Transaction.record_change = without_usage


@fault
def number_used_twice() -> None:
    """Two successive transactions of a writer share a number, unless they change the same provider."""
    record = Transaction.record

    def record_twice(self: Transaction, writer: Any) -> int:
        changes = self.changed_providers
        previous: tuple[int, set[int]] = getattr(writer, "numbered", (0, set()))
        if previous[0] == writer.seq > 0 and previous[1].isdisjoint(changes):
            writer.seq -= 1
            self._notes = None  # numbers are unique in the table of events
            writer.numbered = writer.seq + 1, {*previous[1], *changes}
        else:
            writer.numbered = writer.seq + 1, {*changes}
        return record(self, writer)

    Transaction.record = record_twice


@fault
def number_skipped() -> None:
    """Every tenth number of a writer is skipped."""
    record = Transaction.record

    def record_after_gap(self: Transaction, writer: Any) -> int:
        writer.seq += writer.seq % 10 == 9
        return record(self, writer)

    Transaction.record = record_after_gap


@fault
def lost_tail_not_noticed() -> None:
    """An index keeps its contents although the database has lost transactions that the index has read."""
    changes_since = Position.changes_since
    Position.follows = lambda self, earlier: True
    Position.changes_since = lambda self, db, earlier, max_changes: changes_since(self, db, earlier, max_changes) or {}


@fault
def stale_snapshot() -> None:
    """A search may use a snapshot that is not current."""
    current = LiveIndex.current

    def recent(self: LiveIndex) -> Any:
        indexed = self._indexed
        if indexed is None or time.monotonic() - self._current_at > _MAX_AGE:
            return current(self)
        return indexed.snapshot

    LiveIndex.current = recent


@fault
def earlier_refresh_shared() -> None:
    """A search that waited for another thread's refresh uses its result, even if the refresh began too early."""
    current = LiveIndex.current

    def snapshot_of_shared_run(self: LiveIndex) -> Any:
        run = self._shared
        if run._begun == run._ended or self._indexed is None:
            return current(self)
        with run._lock:
            return self._indexed.snapshot

    LiveIndex.current = snapshot_of_shared_run


@fault
def usage_not_applied() -> None:
    """An index does not apply the usage of some providers."""
    applied = refresh.apply_changes

    def applied_to_others(db: Any, snapshot: Any, changes: Mapping[int, str]) -> Any:
        return applied(db, snapshot, {id_: kind for id_, kind in changes.items() if kind != feed.USAGE or id_ % 3})

    refresh.apply_changes = applied_to_others
