"""How far a reader has followed the feed, and what has happened since."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db import feed
from placement.db.tables import change_writers, feed_instance, provider_changes
from placement.db.transaction import Reading

#: Who has not looked for longer may not find all writers any more that were there meanwhile.
_TRUSTED = datetime.timedelta(seconds=feed.LIFETIME / 4)


@dataclass(frozen=True, slots=True)
class Position:
    """A moment in the life of a database: which was each writer's newest transaction."""

    #: Whose writers these are; None in a database that has lost its identity, of which no two moments compare.
    instance: str | None
    #: When, by the database's own clock: those of readers may have stood still.
    at: datetime.datetime
    #: By writer; 0 for one that has not changed anything.  One that has ended is there under its id made negative.
    newest: Mapping[int, int]

    @classmethod
    def now(cls, db: Reading) -> Self:
        """Where the feed is; one statement, for any number of writers."""
        row = db.execute(_NOW).one()
        text = row.newest or ""
        if text.count(",") != 2 * row.writers:  # MySQL cuts a text that is too long
            return cls(row.instance, row.at, {pair.id: pair.seq for pair in db.execute(sa.select(_writers))})
        numbers = orjson.loads(f"[{text[:-1]}]")
        return cls(row.instance, row.at, dict(zip(numbers[::2], numbers[1::2], strict=True)))

    def follows(self, earlier: Self) -> bool:
        """Whether both are of one feed, in this order, with so little time between them that it can be followed."""
        return (
            self.instance is not None
            and self.instance == earlier.instance
            and abs(self.at - earlier.at) < _TRUSTED
            and all(self._goes_on(writer, known) for writer, known in earlier.newest.items() - self.newest.items())
            and all(earlier._knows(writer, seq) for writer, seq in self.newest.items() - earlier.newest.items())
        )

    def _goes_on(self, writer: int, known: int) -> bool:
        """Whether a writer of before is where it was, or further, or has ended since; or had ended before."""
        return writer < 0 or -writer in self.newest or self.newest.get(writer, -1) >= known

    def _knows(self, writer: int, seq: int) -> bool:
        """Whether a later writer, if it has ended, has done nothing that is not known here."""
        return writer > 0 or self.newest.get(-writer) == seq

    def transactions_since(self, earlier: Self) -> int:
        """How many transactions there were in between, as far as their numbers tell."""
        return sum(seq - known for _, known, seq in self._moved_since(earlier))

    def _moved_since(self, earlier: Self) -> list[tuple[int, int, int]]:
        """Who is further than it was, and where it was, and where it is."""
        different = self.newest.items() - earlier.newest.items()
        moved = ((writer, earlier.newest.get(writer, 0), seq) for writer, seq in different if writer > 0)
        return [(writer, known, seq) for writer, known, seq in moved if seq > known]

    def changes_since(self, db: Connection, earlier: Self, most: int) -> dict[int, str] | None:
        """What changed, by provider; None if that cannot be told any more, or is more than ``most``.

        ``db`` must see the feed as it is at this position.
        """
        known_of = {writer: known for writer, known, _ in self._moved_since(earlier)}
        if not known_of:
            return {}
        later = _any((writer, ">", known) for writer, known in known_of.items())
        # Rows are cleared away from below: if the newest known is there, or the first, all after it are.  If the
        # newest known is not there though it is not old, the database has lost it.
        anchors = {(writer, known or 1) for writer, known in known_of.items()}
        here = _any((writer, "=", seq) for writer, seq in anchors)
        rows = db.exec_driver_sql(_CHANGES.format(later=later, anchors=here, most=most + 1)).all()
        found = {(row[0], row[1]) for row in rows if row[3] is None}
        if found != anchors or len(rows) > most + len(found):
            return None
        changes: dict[int, str] = {}
        for _, _, provider_id, what in rows:
            if what is not None:
                changes[provider_id] = feed.combined(changes.get(provider_id), what)
        return changes


def _any(conditions: Iterable[tuple[int, str, int]]) -> str:
    """SQL for rows of these writers with such numbers."""
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
# One row, since drivers take their time for each; and one that is there when there is no writer.
_NOW = sa.select(
    sa.select(feed_instance.c.uuid).limit(1).scalar_subquery().label("instance"),
    sa.func.current_timestamp().label("at"),
    sa.func.aggregate_strings(_pair, "").label("newest"),
    sa.func.count().label("writers"),
).select_from(_writers)
_CHANGES = """
SELECT * FROM (SELECT writer_id, 0 AS seq, provider_id, what FROM provider_changes WHERE {later}
                GROUP BY writer_id, provider_id, what LIMIT {most}) AS changes
UNION ALL
SELECT DISTINCT writer_id, seq, 0, NULL FROM provider_changes WHERE {anchors}"""
