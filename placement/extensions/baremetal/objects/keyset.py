"""Keyset pagination: a page begins after a row, not at an offset, so that no row is shown twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from placement.db.writes.transaction import Reading


@dataclass(frozen=True, slots=True)
class Paging:
    """The page and order that a client requests."""

    limit: int
    #: The uuid of the last item of the previous page; None for the first page.
    marker: str | None = None
    #: ``id`` sorts by creation, as does every key among equal values.
    sort_key: str = "id"
    #: Whether to reverse both the sort key and the order of creation.
    descending: bool = False


def read(
    db: Reading,
    paging: Paging,
    columns: Iterable[sa.ColumnElement[Any]],
    conditions: Iterable[sa.ColumnElement[bool]],
    row_id: sa.ColumnElement[int],
    key: sa.ColumnElement[Any],
    after: tuple[int, Any] | None,
) -> Sequence[Row[Any]]:
    """Return the rows of a page.

    Null sorts below every value, on every database.

    Args:
        row_id: The id column.
        key: The expression of the sort key.
        after: Id and key of the last row of the previous page.
    """
    by_id = paging.sort_key == "id"
    order = [row_id] if by_id else [key.is_not(None), key, row_id]
    criteria = (
        [*conditions] if after is None else [*conditions, _follows(row_id, None if by_id else key, paging, *after)]
    )
    ordered = (column.desc() if paging.descending else column.asc() for column in order)
    return db.execute(sa.select(*columns).where(*criteria).order_by(*ordered).limit(paging.limit)).all()


def _follows(
    column: sa.ColumnElement[int], key: sa.ColumnElement[Any] | None, paging: Paging, row_id: int, value: Any
) -> sa.ColumnElement[bool]:
    next_id = column < row_id if paging.descending else column > row_id
    if key is None:
        return next_id
    if value is None:
        follows = sa.and_(key.is_(None), next_id)
        return follows if paging.descending else sa.or_(follows, key.is_not(None))
    same_key = sa.and_(key == value, next_id)
    return sa.or_(key < value, key.is_(None), same_key) if paging.descending else sa.or_(key > value, same_key)
