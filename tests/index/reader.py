"""A reader that keeps an index of a database, and compares it with the database at each refresh."""

from __future__ import annotations

import datetime
from dataclasses import replace

from sqlalchemy.engine import Connection

from placement.db.database import Database
from placement.index.refresh import Indexed, load_index, refresh_index
from tests.index.contents import meaning


class Reader:
    """A reader, whose ``look`` fails if a refresh differs from reading everything."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.indexed = database.snapshot(load_index)
        #: The number of refreshes that could follow the feed.
        self.followed = 0

    def look(self, *, must_follow: bool = False) -> None:
        """Refresh and compare in one snapshot of the database, so that concurrent writes do not matter."""
        self.indexed, fresh, followed = self.database.snapshot(self._look)
        assert meaning(self.indexed.snapshot) == meaning(fresh.snapshot)
        assert self.indexed.position.newest == fresh.position.newest
        assert followed or not must_follow
        self.followed += followed

    def _look(self, db: Connection) -> tuple[Indexed, Indexed, bool]:
        fresh, earlier = load_index(db), self.indexed.position
        changes = fresh.position.changes_since(db, earlier, 1000) if fresh.position.follows(earlier) else None
        return refresh_index(db, self.indexed), fresh, changes is not None

    def age(self, seconds: float) -> None:
        """Behave as if the last refresh was this much longer ago."""
        position = self.indexed.position
        at = position.at - datetime.timedelta(seconds=seconds)
        self.indexed = self.indexed._replace(position=replace(position, at=at))
