"""A page of the list of allocation records: filters, order and columns in one statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from placement.db.writes.transaction import Reading
from placement.extensions.baremetal.objects import keyset
from placement.extensions.baremetal.objects.keyset import Paging
from placement.extensions.baremetal.objects.record import ACTIVE, ERROR, Record
from placement.extensions.baremetal.tables import RECORD_IS_LIVE, baremetal_allocations

_R = baremetal_allocations.c
_IN_ERROR = _R.node_uuid.is_(None)
#: Columns by which records can be sorted.
SORT_KEYS: dict[str, sa.ColumnElement[Any]] = {
    "state": sa.case((_IN_ERROR, ERROR), else_=ACTIVE),
    **{
        name: _R[name]
        for name in ("id", "uuid", "name", "resource_class", "owner", "last_error", "created_at", "updated_at")
    },
}
#: Columns that a page can show.
COLUMNS: dict[str, sa.ColumnElement[Any]] = {**{column.name: column for column in _R}, **SORT_KEYS}


def read(
    db: Reading,
    paging: Paging,
    columns: Iterable[str] = COLUMNS,
    *,
    state: str | None = None,
    after: Record | Row[Any] | None = None,
    **values: str | None,
) -> Sequence[Row[Any]]:
    """Return columns of the records on a page; None disables a filter.

    Args:
        columns: Names in COLUMNS, all by default; traits, candidates and ``extra`` of a page can take much memory.
        after: The last record of the previous page.
        values: Required values by column.
    """
    if state not in (None, ACTIVE, ERROR):
        return []
    conditions = [RECORD_IS_LIVE, *(_R[name] == value for name, value in values.items() if value is not None)]
    if state is not None:
        conditions.append(_IN_ERROR if state == ERROR else ~_IN_ERROR)
    key = paging.sort_key
    last = None if after is None else (after.id, getattr(after, key))
    return keyset.read(
        db, paging, (COLUMNS[name].label(name) for name in columns), conditions, _R.id, SORT_KEYS[key], last
    )
