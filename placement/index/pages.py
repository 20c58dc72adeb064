"""Reading of all rows of a table in pages; the server packs each page into one text.

Drivers spend most of the time of a long read on creating a tuple for each row, in particular PyMySQL, which is written
in Python.  A text is parsed at once, as JSON.  SQLite, which is part of the process, returns rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.engine import bulkhead

#: Rows of a page: few enough for a text that MySQL does not truncate, and for memory to be negligible.
PAGE_SIZE = 10_000
#: An exclusive upper bound of all keys.
_END = 2**63 - 1

_LOW, _HIGH = sa.bindparam("low", type_=sa.BigInteger), sa.bindparam("high", type_=sa.BigInteger)


class Pages(NamedTuple):
    """The rows of a statement, in pages of consecutive keys."""

    #: A column of integers that are not negative.  Reading is fastest if the rows are stored in its order.
    key: sa.Column[int]
    #: The statement.  Its columns are numbers, which must not be NULL, and texts.
    rows: sa.Select[Any]

    def read(self, db: Connection) -> Iterator[list[Any]]:
        """Yield the values of each page, row by row without a separation; there is at least one page.

        A page has about PAGE_SIZE rows, or all rows of one key.  Their order is arbitrary.
        """
        rows = self.rows.where(self.key >= _LOW, self.key < _HIGH)
        packed = None if db.dialect.name == "sqlite" else _packed_statement(db.dialect.name, rows)
        end_of_page = sa.select(self.key).where(self.key >= _LOW).order_by(self.key).limit(1).offset(PAGE_SIZE)
        low = 0
        while low < _END:
            ends = driver_rows(db, end_of_page, {"low": low})
            high = max(low + 1, ends[0][0]) if ends else _END
            keys = {"low": low, "high": high}
            values = None if packed is None else _parse(driver_rows(db, packed, keys), len(rows.selected_columns))
            if values is None:
                values = list(itertools.chain.from_iterable(driver_rows(db, rows, keys)))
            yield values
            low = high


def driver_rows(db: Connection, statement: Any, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Return the driver's rows, since SQLAlchemy's take twice the time."""
    cursor = cast(Any, db.execute(statement, parameters).cursor)
    rows = list(cursor.fetchall())
    bulkhead.note_progress()
    return rows


def _packed_statement(dialect: str, rows: sa.Select[Any]) -> sa.Select[Any]:
    """Return the statement for the number of rows, and one text with all values, each followed by a comma."""
    values = [
        _as_json(dialect, column) if isinstance(column.type, sa.String) else column for column in rows.subquery().c
    ]
    text = sa.func.aggregate_strings(sa.func.concat_ws(",", *values, ""), "")
    return cast("sa.Select[Any]", sa.select(sa.func.count(), text))


def _as_json(dialect: str, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a text, or NULL, as JSON."""
    quoted = sa.cast(sa.func.to_json(text), sa.Text) if dialect == "postgresql" else sa.func.json_quote(text)
    return sa.func.coalesce(quoted, "null")


def _parse(packed: list[tuple[Any, ...]], columns: int) -> list[Any] | None:
    """Return the values, or None for a text that is not complete, or not JSON.

    MySQL truncates long texts: of a truncated text, the last comma is missing, or separates too few values, or is part
    of an unfinished text.  PostgreSQL writes an infinite allocation ratio as Infinity.
    """
    ((count, text),) = packed
    if not count:
        return []
    if not text.endswith(","):
        return None
    try:
        values: list[Any] = orjson.loads(f"[{text[:-1]}]")
    except orjson.JSONDecodeError:
        return None
    return values if len(values) == count * columns else None
