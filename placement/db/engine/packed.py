"""Queries of which MySQL sends all rows as one text.

Its drivers take time for each column and for each value, PyMySQL most of all, and a claim of many consumers reads
thousands of inventories.  A text is read by a parser of JSON.  The server takes time to make even a short one, so the
answer to a query of few values is rows.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Mapping
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.engine.compiled import CompiledResult, CompiledStatement

#: Values of the lists of a query up to which its rows are sent as rows.
FEW = 16


class PackedQuery(CompiledStatement):
    """A query of numbers and texts, none of which is null; its rows are in no order."""

    def __init__(self, statement: sa.Select[Any]) -> None:
        super().__init__(statement)
        columns = statement.subquery().c
        values = [sa.func.json_quote(column) if isinstance(column.type, sa.String) else column for column in columns]
        # Every value is followed by a comma.
        text = sa.func.aggregate_strings(sa.func.concat_ws(",", *values, ""), "")
        self._packed = CompiledStatement(sa.select(text.label("text"), sa.func.count().label("number")))
        self._width = len(columns)
        self._row = collections.namedtuple("Row", columns.keys())  # type: ignore[misc]

    def execute(self, connection: Connection, parameters: Mapping[str, Any]) -> CompiledResult:
        """Execute the query; raises what SQLAlchemy raises."""
        number = sum(len(value) for value in parameters.values() if isinstance(value, list))
        if number <= FEW or connection.dialect.name not in ("mysql", "mariadb"):
            return super().execute(connection, parameters)
        (packed,) = self._packed.execute(connection, parameters)
        text = packed.text or ""
        if text.count(",") != self._width * packed.number:
            # A text that was cut at GROUP_CONCAT's limit has too few values, and so has one with a null.
            return super().execute(connection, parameters)
        values = iter(orjson.loads(f"[{text[:-1]}]"))
        rows = itertools.starmap(self._row, zip(*[values] * self._width, strict=True))
        return CompiledResult(list(rows), packed.number)
