"""The order of a list and the rows after a given one: pages by key, not by number, so that no row is shown twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa


@dataclass(frozen=True, slots=True)
class Order:
    """Rows by a key, and by their ids where the key is the same; ``descending`` turns both.

    Databases do not agree on where null goes; here it is less than every value.
    """

    id: sa.ColumnElement[int]
    #: None for the ids alone.
    key: sa.ColumnElement[Any] | None = None
    descending: bool = False

    @property
    def by(self) -> list[sa.ColumnElement[Any]]:
        """What to give to ORDER BY."""
        columns = [self.id] if self.key is None else [self.key.is_not(None), self.key, self.id]
        return [column.desc() if self.descending else column.asc() for column in columns]

    def after(self, row_id: int, value: Any) -> sa.ColumnElement[bool]:
        """Return the condition of the rows that follow the one with this id, whose key has this value."""
        key = self.key
        next_id = self.id < row_id if self.descending else self.id > row_id
        if key is None:
            return next_id
        if value is None:
            follows = sa.and_(key.is_(None), next_id)
            return follows if self.descending else sa.or_(follows, key.is_not(None))
        same = sa.and_(key == value, next_id)
        return sa.or_(key < value, key.is_(None), same) if self.descending else sa.or_(key > value, same)
