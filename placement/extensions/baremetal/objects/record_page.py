"""A page of the list of allocation records: conditions, an order, and the record that it begins after."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from placement.db.writes.transaction import Reading
from placement.extensions.baremetal.objects.keyset import Order
from placement.extensions.baremetal.objects.record import ACTIVE, ERROR, Record
from placement.extensions.baremetal.tables import RECORD_IS_LIVE, baremetal_allocations

_R = baremetal_allocations.c
_IN_ERROR = _R.node_uuid.is_(None)
#: What records can be sorted by.
SORT_KEYS: dict[str, sa.ColumnElement[Any]] = {
    "state": sa.case((_IN_ERROR, ERROR), else_=ACTIVE),
    **{
        name: _R[name]
        for name in ("id", "uuid", "name", "resource_class", "owner", "last_error", "created_at", "updated_at")
    },
}
#: What a page can show.
COLUMNS: dict[str, sa.ColumnElement[Any]] = {**{column.name: column for column in _R}, **SORT_KEYS}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """Which records a client asks for; None is no condition."""

    limit: int
    #: Names in COLUMNS: traits, candidates and ``extra`` of a page can take much memory.
    columns: Collection[str] = tuple(COLUMNS)
    node_uuid: str | None = None
    resource_class: str | None = None
    state: str | None = None
    owner: str | None = None
    #: One of SORT_KEYS; records with the same value are in the order of their creation, which ``descending`` turns too.
    sort_key: str = "id"
    descending: bool = False
    #: The last record of the page before; None for the first page.
    after: Record | Row[Any] | None = None

    def read(self, db: Reading) -> Sequence[Row[Any]]:
        """Return the columns of the records of the page."""
        if self.state not in (None, ACTIVE, ERROR):
            return []
        columns = (COLUMNS[name].label(name) for name in self.columns)
        conditions = (RECORD_IS_LIVE, *self._conditions())
        return db.execute(
            sa.select(*columns)
            .select_from(baremetal_allocations)
            .where(*conditions)
            .order_by(*self._order.by)
            .limit(self.limit)
        ).all()

    def _conditions(self) -> list[sa.ColumnElement[bool]]:
        found = [
            _R[name] == value
            for name in ("node_uuid", "resource_class", "owner")
            if (value := getattr(self, name)) is not None
        ]
        if self.state is not None:
            found.append(_IN_ERROR if self.state == ERROR else ~_IN_ERROR)
        if self.after is not None:
            found.append(self._order.after(self.after.id, getattr(self.after, self.sort_key)))
        return found

    @property
    def _order(self) -> Order:
        key = None if self.sort_key == "id" else SORT_KEYS[self.sort_key]
        return Order(_R.id, key, self.descending)
