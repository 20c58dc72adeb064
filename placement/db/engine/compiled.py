"""Statements that are compiled once and then sent as text, for claims (docs/adr/0035).

At each execution, SQLAlchemy looks up the compiled form of a statement and expands its lists again, which takes more
time than the driver.  This module keeps the text, for each dialect and each number of list values, and the sources
of its values.  ``exec_driver_sql`` sends it, so listeners, the log and errors work as for any other statement.
"""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql import visitors

#: Maximum number of list values in a compiled statement.  SQLAlchemy executes statements with longer lists: its share
#: of the time is small there, and no text need be kept for each number of values.
_MAX_LIST_VALUES = 100
#: Rows per INSERT, to bound the length of its text.  No database limits the number of variables here: SQLite runs the
#: statement once for each row, PostgreSQL receives all rows as one value, and MySQL's drivers put values into the text.
_BATCH_SIZE = 1000
#: Maximum number of rows per INSERT that is sent in one statement with others.
_MAX_COMBINED_ROWS = 16

#: Values by name: a row, or the parameters of a statement.
Row = Mapping[str, Any]


class CompiledStatement:
    """A query, an UPDATE or a DELETE; its parameters with ``bindparam(..., expanding=True)`` are lists."""

    def __init__(self, statement: Any) -> None:
        """Prepare a statement, which must set every column that has a default."""
        self._statement = statement
        binds = [part for part in visitors.iterate(statement) if isinstance(part, sa.BindParameter)]
        #: The names of the parameters that are lists.
        self._lists = tuple(dict.fromkeys(bind.key for bind in binds if bind.expanding))
        #: The texts, by dialect and by the number of values in each list.
        self._texts = weakref.WeakKeyDictionary[Dialect, dict[tuple[int, ...], _Text]]()

    def execute(self, connection: Connection, parameters: Mapping[str, Any]) -> Any:
        """Return the rows of a query, or a result with ``rowcount`` for a change; exceptions are SQLAlchemy's."""
        lengths = tuple([len(parameters[name]) for name in self._lists])
        if sum(lengths) > _MAX_LIST_VALUES:
            return connection.execute(self._statement, parameters)
        texts = self._texts.setdefault(connection.dialect, {})
        text = texts.get(lengths)
        if text is None:
            text = texts[lengths] = _Text(self._statement, connection.dialect, parameters)
        result = connection.exec_driver_sql(text.sql, text.arrange(text.values(parameters)))
        return text.rows(result) if result.returns_rows else result


#: A function from rows to the text of an INSERT and its values.
_Form = Callable[[Sequence[Row]], tuple[str, Any]]


class CompiledInsert:
    """An INSERT of any number of rows into some columns of a table."""

    def __init__(self, table: sa.Table, *columns: str, **expressions: sa.ColumnElement[Any]) -> None:
        """Prepare an INSERT of these columns; the database computes other columns by the expressions."""
        self._table, self._columns, self._expressions = table, columns, expressions
        self._forms = weakref.WeakKeyDictionary[Dialect, _Form]()

    def execute(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Insert the rows, in order; exceptions are SQLAlchemy's."""
        for text, values in self._batches(connection.dialect, rows):
            connection.exec_driver_sql(text, values)

    def execute_returning_ids(self, connection: Connection, rows: Sequence[Row], key: str) -> dict[Any, int]:
        """Insert the rows, and return their ids by the value of the column ``key``, which must not be null."""
        if connection.dialect.insert_returning and connection.dialect.name != "sqlite":
            ids: dict[Any, int] = {}
            for text, values in self._batches(connection.dialect, rows):
                ids |= {row[0]: row[1] for row in connection.exec_driver_sql(f"{text} RETURNING {key}, id", values)}
            return ids
        if len(rows) == 1:  # the driver knows the id
            text, values = self._form(connection.dialect)(rows)
            return {rows[0][key]: connection.exec_driver_sql(text, values).lastrowid}
        self.execute(connection, rows)
        column = self._table.c[key]
        inserted = sa.select(column, self._table.c.id).where(column.in_([row[key] for row in rows]))
        return {row[0]: row[1] for row in connection.execute(inserted)}

    def _batches(self, dialect: Dialect, rows: Sequence[Row]) -> Iterator[tuple[str, Any]]:
        """Yield the text and the values of each statement that inserts a batch of the rows."""
        form = self._form(dialect)
        for start in range(0, len(rows), _BATCH_SIZE):
            yield form(rows[start : start + _BATCH_SIZE])

    @classmethod
    def execute_together(cls, connection: Connection, inserts: Sequence[tuple[CompiledInsert, Sequence[Row]]]) -> None:
        """Insert rows into different tables, in one statement if the server supports it and the rows are few.

        No row may refer to another one, because the order is undefined.  Exceptions are SQLAlchemy's.
        """
        dialect, inserts = connection.dialect, [(insert, rows) for insert, rows in inserts if rows]
        are_few = all(len(rows) <= _MAX_COMBINED_ROWS for _, rows in inserts)
        if len(inserts) > 1 and are_few and _combines_inserts(dialect):
            texts, values = zip(*[insert._form(dialect)(rows) for insert, rows in inserts], strict=True)
            parameters = {name: value for named in values for name, value in named.items()}
            connection.exec_driver_sql(_combine(dialect, texts), parameters)
        else:
            for insert, rows in inserts:
                insert.execute(connection, rows)

    def _form(self, dialect: Dialect) -> _Form:
        if dialect not in self._forms:
            self._forms[dialect] = self._json_form(dialect) if dialect.name == "postgresql" else self._row_form(dialect)
        return self._forms[dialect]

    @property
    def _single_row_insert(self) -> sa.Insert:
        values: dict[str, Any] = {name: sa.bindparam(name) for name in self._columns} | self._expressions
        return sa.insert(self._table).values(values).inline()

    def _row_form(self, dialect: Dialect) -> _Form:
        """Return the form for SQLite, whose driver executes a single-row statement for each row, or for MySQL."""
        insert = _Text(self._single_row_insert, dialect, dict.fromkeys(self._columns))
        if dialect.name == "sqlite":
            return lambda rows: (insert.sql, [insert.arrange(insert.values(row)) for row in rows])
        return _literal_form(insert, self._table.name)

    def _json_form(self, dialect: Dialect) -> _Form:
        """Return the form for PostgreSQL: all rows are one value, so that only one text has to be prepared.

        The driver spends time on each value, and more on each text that it has not prepared.
        """
        name = f"{self._table.name}_rows"
        types = [sa.column(column, self._table.c[column].type) for column in self._columns]
        text = sa.cast(sa.bindparam(name, type_=sa.Text), sa.JSON)
        records = sa.func.json_to_recordset(text).table_valued(*types, name="given").render_derived(with_types=True)
        values = {column: records.c[column] for column in self._columns} | self._expressions
        statement = sa.insert(self._table).from_select([*values], sa.select(*values.values()))
        insert = _Text(statement, dialect, {name: ""})
        return lambda rows: (insert.sql, {name: orjson.dumps(rows).decode()})


def _literal_form(insert: _Text, table: str) -> _Form:
    """Return the form for MySQL: integers are part of the text, and equal values of other types are sent once.

    MySQL's drivers spend most of their time converting values.
    """
    prefix, _, row_text = insert.sql.partition(" VALUES ")

    def form(rows: Sequence[Row]) -> tuple[str, Any]:
        names: dict[tuple[type, Any], str] = {}

        def literal(value: Any) -> str:
            if value is None or type(value) is int:
                return "NULL" if value is None else str(value)
            # With the table's name, because INSERTs into several tables may be sent together.
            return f"%({names.setdefault((type(value), value), f'{table}_{len(names)}')})s"

        texts = [row_text % insert.arrange([literal(value) for value in insert.values(row)]) for row in rows]
        return f"{prefix} VALUES {', '.join(texts)}", {name: value for (_, value), name in names.items()}

    return form


def _combines_inserts(dialect: Dialect) -> bool:
    """Whether the server supports several INSERTs in one statement.

    MySQL would have to accept several statements in every text, which makes SQL injection easier.
    """
    return dialect.name == "postgresql" or getattr(dialect, "is_mariadb", False)


def _combine(dialect: Dialect, inserts: Sequence[str]) -> str:
    if dialect.name == "postgresql":
        *preceding, last = inserts
        return "WITH " + ", ".join(f"insert_{number} AS ({text})" for number, text in enumerate(preceding)) + f" {last}"
    return "BEGIN NOT ATOMIC " + "; ".join(inserts) + "; END"


class _Text:
    """The text of a statement for one dialect and given lengths of its lists, and the sources of its values."""

    def __init__(self, statement: Any, dialect: Dialect, parameters: Row) -> None:
        """Compile the statement for the lengths of the lists in these parameters."""
        compiled = statement.compile(dialect=dialect)
        if compiled.insert_prefetch or compiled.update_prefetch:
            raise ValueError(f"the statement must set every column that has a default: {compiled}")
        expanded = compiled.construct_expanded_state(dict(parameters))
        self.sql: str = expanded.statement
        lists = expanded.parameter_expansion
        list_of = {
            name: (parameter, index) for parameter, elements in lists.items() for index, name in enumerate(elements)
        }
        names = [name for name in expanded.positiontup or expanded.parameters if name not in lists]
        #: The names in the text; None if its parameters are positional.
        self._names = None if compiled.positional else names
        #: The parameter of each value, and the value's index if the parameter is a list.
        self._sources = [list_of.get(name, (name, None)) for name in names]
        #: Values that are part of the statement itself.
        self._constants = {name: expanded.parameters[name] for name, _ in self._sources if name not in parameters}
        parameter_types = [compiled.binds[name].type.dialect_impl(dialect) for name, _ in self._sources]
        self._convert = _converter([type_.bind_processor(dialect) for type_ in parameter_types])
        columns = [*statement.selected_columns] if isinstance(statement, sa.SelectBase) else []
        self._types = [column.type.dialect_impl(dialect) for column in columns]
        self._row: Any = collections.namedtuple("Row", [column.key for column in columns])  # type: ignore[misc]
        self._convert_row: Callable[[list[Any]], list[Any]] | None = None

    def values(self, parameters: Row) -> list[Any]:
        """Return the values, converted by the types of the parameters."""
        arguments = {**self._constants, **parameters} if self._constants else parameters
        return self._convert(
            [arguments[name] if index is None else arguments[name][index] for name, index in self._sources]
        )

    def arrange(self, values: Sequence[Any]) -> Any:
        """Return the values by name or by position, as the text refers to them."""
        return tuple(values) if self._names is None else dict(zip(self._names, values, strict=True))

    def rows(self, result: sa.CursorResult[Any]) -> list[Any]:
        """Return the rows as named tuples, with values converted by the types of their columns."""
        if self._convert_row is None:
            driver_types = [description[1] for description in result.cursor.description]
            pairs = zip(self._types, driver_types, strict=True)
            self._convert_row = _converter([type_.result_processor(result.dialect, code) for type_, code in pairs])
        return [self._row(*self._convert_row([*row])) for row in result.all()]


def _converter(processors: Sequence[Callable[[Any], Any] | None]) -> Callable[[list[Any]], list[Any]]:
    """Return a function that converts each value of a list by its processor, if any."""
    conversions = [(index, processor) for index, processor in enumerate(processors) if processor is not None]

    def convert(values: list[Any]) -> list[Any]:
        for index, processor in conversions:
            values[index] = processor(values[index])
        return values

    return convert
