"""How far somebody has followed the feed, and what has happened since."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db import feed
from placement.db.engine import Reading
from placement.db.tables import change_writers, feed_instance, provider_changes

#: Who has not looked for longer may not find all writers any more that were there meanwhile.
_TRUSTED = datetime.timedelta(seconds=feed.LIFETIME / 4)


@dataclass(frozen=True, slots=True)
class Position:
    """A moment in the life of a database: which was each writer's newest transaction."""

    #: Whose writers these are; None in a database that has lost its identity, of which no two moments compare.
    instance: str | None
    #: When, by the database's own clock: those of readers may have stood still.
    at: datetime.datetime
    #: By writer; 0 for one that has not changed anything.
    newest: Mapping[int, int]

    @classmethod
    def now(cls, db: Reading) -> Self:
        """Where the feed is; one statement, whatever the number of writers."""
        row = db.execute(_NOW).one()
        numbers = orjson.loads(f"[{row.newest or ''}]")
        return cls(row.instance, row.at, dict(zip(numbers[::2], numbers[1::2], strict=True)))

    def follows(self, earlier: Self) -> bool:
        """Whether both are of one feed, in this order, with so little time between them that it can be followed."""
        return (
            self.instance is not None
            and self.instance == earlier.instance
            and abs(self.at - earlier.at) < _TRUSTED
            and all(seq >= known for _, known, seq in self._moved_since(earlier))
        )

    def transactions_since(self, earlier: Self) -> int:
        """How many transactions there were in between, as far as their numbers tell."""
        return sum(seq - known for _, known, seq in self._moved_since(earlier) if seq > known)

    def _moved_since(self, earlier: Self) -> list[tuple[int, int, int]]:
        """Who is not where it was, and where it was, and where it is."""
        moved = self.newest.items() - earlier.newest.items()
        return [(writer, earlier.newest.get(writer, 0), seq) for writer, seq in moved]

    def changes_since(self, db: Connection, earlier: Self, most: int) -> dict[int, str] | None:
        """What changed, by provider; None if that cannot be told any more, or is more than ``most``.

        ``db`` must see the feed as it is at this position.
        """
        next_numbers = {writer: known + 1 for writer, known, seq in self._moved_since(earlier) if seq > known}
        if not next_numbers:
            return {}
        ranges = " OR ".join(f"(writer_id = {writer:d} AND seq >= {seq:d})" for writer, seq in next_numbers.items())
        rows = db.exec_driver_sql(_CHANGES.format(ranges=ranges, most=most + 1)).all()
        # Numbers have no gaps and are cleared away from below: if the next one is there, all after it are.
        if len(rows) > most or not next_numbers.items() <= {(row[0], row[1]) for row in rows}:
            return None
        changes: dict[int, str] = {}
        for _, _, provider_id, what in rows:
            changes[provider_id] = feed.stronger(changes.get(provider_id), what)
        return changes


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
_pair = sa.cast(_writers.c.id, sa.String) + "," + sa.cast(_writers.c.seq, sa.String)
# One row, since drivers take their time for each; and one that is there when there is no writer.
_NOW = sa.select(
    sa.select(feed_instance.c.uuid).limit(1).scalar_subquery().label("instance"),
    sa.func.current_timestamp().label("at"),
    sa.func.aggregate_strings(_pair, ",").label("newest"),
).select_from(_writers)
_CHANGES = """
SELECT writer_id, MIN(seq), provider_id, what FROM provider_changes WHERE {ranges}
 GROUP BY writer_id, provider_id, what LIMIT {most}"""
