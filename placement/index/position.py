"""A reader's position in the feed, and the changes between two positions (docs/adr/0004)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db import feed
from placement.db.engine.compiled import CompiledStatement
from placement.db.schema.tables import change_writers, feed_instance, provider_changes
from placement.db.writes.transaction import Reading
from placement.objects.claims.leases import ANY_EXPIRED

#: Maximum time between two reads of the feed: after a longer time, a reader may have missed writers that were ended
#: and deleted.
MAX_GAP = datetime.timedelta(seconds=feed.LIFETIME / 4)


@dataclass(frozen=True, slots=True)
class Position:
    """A vector clock: the sequence number of the newest transaction of each writer in one state of the database."""

    #: The identity of the feed; None if the database has lost it, and then no two positions can be compared.
    instance: str | None
    #: The time of the read, by the database's clock, because a reader's clock may have been suspended.
    at: datetime.datetime
    #: Sequence numbers by writer; 0 for a writer without rows.  A writer that was ended has a negated id.
    newest: Mapping[int, int]
    #: Whether an expired lease still holds resources.
    has_expired_leases: bool = False

    @classmethod
    def now(cls, db: Reading) -> Self:
        """Return the current position, in one statement for any number of writers."""
        (row,) = db.execute(_NOW, {})
        text = row.newest or ""
        if text.count(",") != 2 * row.writers:  # MySQL truncated the text at GROUP_CONCAT's limit
            newest = {pair.id: pair.seq for pair in db.execute(sa.select(_writers))}
        else:
            numbers = orjson.loads(f"[{text[:-1]}]")
            newest = dict(zip(numbers[::2], numbers[1::2], strict=True))
        return cls(row.instance, row.at, newest, bool(row.has_expired_leases))

    def follows(self, earlier: Self) -> bool:
        """Whether this is a later position in the same feed, recent enough for the changes between them to be known."""
        return (
            self.instance is not None
            and self.instance == earlier.instance
            and abs(self.at - earlier.at) < MAX_GAP
            and all(self._continues(writer, seq) for writer, seq in earlier.newest.items() - self.newest.items())
            and all(earlier._knows(writer, seq) for writer, seq in self.newest.items() - earlier.newest.items())
        )

    def _continues(self, writer: int, seq: int) -> bool:
        """Whether a writer of an earlier position has not gone backwards; ended writers may be missing."""
        return writer < 0 or -writer in self.newest or self.newest.get(writer, -1) >= seq

    def _knows(self, writer: int, seq: int) -> bool:
        """Whether a writer of a later position is not ended, or was ended at its sequence number in this position."""
        return writer > 0 or self.newest.get(-writer) == seq

    def transactions_since(self, earlier: Self) -> int:
        """Return the number of transactions since an earlier position, as far as sequence numbers show."""
        return sum(seq - earlier_seq for _, earlier_seq, seq in self._advances_since(earlier))

    def _advances_since(self, earlier: Self) -> list[tuple[int, int, int]]:
        """Return the id, the earlier and the current sequence number of each writer that has advanced."""
        different = self.newest.items() - earlier.newest.items()
        steps = ((writer, earlier.newest.get(writer, 0), seq) for writer, seq in different if writer > 0)
        return [(writer, earlier_seq, seq) for writer, earlier_seq, seq in steps if seq > earlier_seq]

    def changes_since(self, db: Connection, earlier: Self, max_changes: int) -> dict[int, str] | None:
        """Return the kind of change since an earlier position, by provider id.

        Args:
            db: A connection that sees the state of the database at this position.
            earlier: A position that this one follows.
            max_changes: The maximum number of changes to return.

        Returns:
            The changes; None for more than ``max_changes``, or if required rows have been deleted.
        """
        earlier_seqs = {writer: earlier_seq for writer, earlier_seq, _ in self._advances_since(earlier)}
        if not earlier_seqs:
            return {}
        later = _any_of((writer, ">", seq) for writer, seq in earlier_seqs.items())
        # Rows are deleted in ascending order: if the earlier position's row exists, or row 1, so do all later rows.
        # If it does not exist, it was deleted, or the database has lost it.
        anchors = {(writer, seq or 1) for writer, seq in earlier_seqs.items()}
        at_anchors = _any_of((writer, "=", seq) for writer, seq in anchors)
        rows = db.exec_driver_sql(_CHANGES.format(later=later, anchors=at_anchors, limit=max_changes + 1)).all()
        existing = {(row[0], row[1]) for row in rows if row[3] is None}
        if existing != anchors or len(rows) > max_changes + len(existing):
            return None
        changes: dict[int, str] = {}
        for _, _, provider_id, kind in rows:
            if kind is not None:
                changes[provider_id] = feed.stronger_change(changes.get(provider_id), kind)
        return changes


def _any_of(conditions: Iterable[tuple[int, str, int]]) -> str:
    """Return a SQL condition for rows that meet any of the conditions: writer, comparison, sequence number."""
    return " OR ".join(f"(writer_id = {writer:d} AND seq {sign} {seq:d})" for writer, sign, seq in conditions)


# MAX and GROUP BY would read every row of the feed; this reads one row for each writer.
_newest: sa.ScalarSelect[Any] = (
    sa.select(provider_changes.c.seq)
    .where(provider_changes.c.writer_id == change_writers.c.id)
    .order_by(provider_changes.c.seq.desc())
    .limit(1)
    .correlate(change_writers)
    .scalar_subquery()
)
_writers = sa.select(change_writers.c.id, sa.func.coalesce(_newest, 0).label("seq")).subquery()
_pair = sa.cast(_writers.c.id, sa.String) + "," + sa.cast(_writers.c.seq, sa.String) + ","
# One row, since drivers spend time on each; an aggregate, which returns a row even without writers.
_NOW = CompiledStatement(
    sa.select(
        sa.select(feed_instance.c.uuid).limit(1).scalar_subquery().label("instance"),
        sa.func.current_timestamp().label("at"),
        ANY_EXPIRED.exists().label("has_expired_leases"),
        sa.func.aggregate_strings(_pair, "").label("newest"),
        sa.func.count().label("writers"),
    ).select_from(_writers)
)
_CHANGES = """
SELECT * FROM (SELECT writer_id, 0 AS seq, provider_id, what FROM provider_changes WHERE {later}
                GROUP BY writer_id, provider_id, what LIMIT {limit}) AS changes
UNION ALL
SELECT DISTINCT writer_id, seq, 0, NULL FROM provider_changes WHERE {anchors}"""
