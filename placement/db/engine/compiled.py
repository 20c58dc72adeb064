"""Statements that are compiled once for each dialect, and then executed by the driver: those of every claim.

SQLAlchemy takes as much processor time for such a statement as its driver does, and more (docs/adr/0035): it looks up
the compiled form, expands lists, and builds a context and a result.  Here all of this is done once for every number of
values in the statement's lists; what is left is a text, and where its values come from.

An engine with listeners (comments, timings, a profiler) or a log of its statements gets the same text and values
through SQLAlchemy, so that these see them.  What is raised is the same in both ways.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql import visitors

#: Values of the lists of one statement; with more of them it is a statement of SQLAlchemy, which keeps no text for
#: each number of them, and whose share of the time is small.
_VALUES = 100
#: Rows of an INSERT up to which there is a text for each number of them, where it has positions.  More of them are
#: given to the driver one by one, which joins them or sends them together.
_FEW_ROWS = 16
#: Rows of one statement where it has no positions.
_MOST_ROWS = 1000
_NAMED = re.compile(r"%\((\w+)\)s")
_NAMED_WITH_TYPE = re.compile(_NAMED.pattern + r"(?:::[\w ]+)?")


class CompiledResult:
    """The rows of a query, as named tuples, or the number of rows that a change has matched."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: Sequence[Any], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)


class CompiledStatement:
    """A query, an UPDATE or a DELETE; parameters that are lists are those of ``bindparam(..., expanding=True)``."""

    def __init__(self, statement: Any) -> None:
        """Take a statement, which must state a value for every column that has a default."""
        self._statement = statement
        binds = [part for part in visitors.iterate(statement) if isinstance(part, sa.BindParameter)]
        #: The names of the parameters that are lists.
        self._lists = tuple(dict.fromkeys(bind.key for bind in binds if bind.expanding))
        #: By dialect, and by the numbers of values in the lists.
        self._texts: weakref.WeakKeyDictionary[Dialect, dict[tuple[int, ...], _Text]] = weakref.WeakKeyDictionary()

    def execute(self, connection: Connection, parameters: Mapping[str, Any]) -> CompiledResult:
        """Execute the statement; raises what SQLAlchemy raises."""
        dialect = connection.dialect
        lengths = tuple([len(parameters[name]) for name in self._lists])
        if sum(lengths) > _VALUES:
            result = connection.execute(self._statement, parameters)
            return CompiledResult(result.all() if result.returns_rows else (), result.rowcount)
        try:
            text = self._texts[dialect][lengths]
        except KeyError:
            text = self._texts.setdefault(dialect, {})[lengths] = _Text(self._statement, dialect, parameters)
        return text.execute(connection, parameters)


class CompiledInsert:
    """An INSERT of any number of rows into some columns of a table."""

    def __init__(self, table: sa.Table, *columns: str, **expressions: sa.ColumnElement[Any]) -> None:
        """Take the columns of which each row has a value, and what the database computes for others, without values."""
        values: dict[str, Any] = {name: sa.bindparam(name) for name in columns} | expressions
        self._statement = sa.insert(table).values(values).inline()
        self._texts: weakref.WeakKeyDictionary[Dialect, _RowsText] = weakref.WeakKeyDictionary()

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert the rows, in their order; raises what SQLAlchemy raises."""
        self._text(connection.dialect, rows).execute(connection, rows)

    def _text(self, dialect: Dialect, rows: Sequence[Mapping[str, Any]]) -> _RowsText:
        text = self._texts.get(dialect)
        if text is None:
            text = self._texts[dialect] = _rows_text(self._statement, dialect, rows[0])
        return text

    @classmethod
    def execute_together(
        cls, connection: Connection, inserts: Sequence[tuple[CompiledInsert, Sequence[Mapping[str, Any]]]]
    ) -> None:
        """Insert rows into several tables: in one statement where the server takes it and the rows are few.

        None of the rows may refer to another one, because the order is not certain.  Raises what SQLAlchemy raises.
        """
        dialect, inserts = connection.dialect, [(insert, rows) for insert, rows in inserts if rows]
        if len(inserts) > 1 and max(len(rows) for _, rows in inserts) <= _FEW_ROWS:
            form = _together(dialect)
            if form is not None:
                texts = [insert._text(dialect, rows) for insert, rows in inserts]
                values = texts[0].no_values()
                several = [
                    text.add_to(values, f"p{number}_", rows)
                    for number, (text, (_, rows)) in enumerate(zip(texts, inserts, strict=True))
                ]
                run(connection, form(several), _parameters(values))
                return
        for insert, rows in inserts:
            insert.execute(connection, rows)


def _together(dialect: Dialect) -> Callable[[Sequence[str]], str] | None:
    """Return what makes one statement of several INSERTs; None if the server has no such statement."""
    if dialect.name == "postgresql":
        return _with_all
    # MySQL's only means is to let a text have many statements, which would open a door to statements in values.
    return _in_block if getattr(dialect, "is_mariadb", False) else None


def _with_all(texts: Sequence[str]) -> str:
    *others, last = texts
    return "WITH " + ", ".join(f"insert_{number} AS ({text})" for number, text in enumerate(others)) + f" {last}"


def _in_block(texts: Sequence[str]) -> str:
    return "BEGIN NOT ATOMIC " + "; ".join(texts) + "; END"


Processor = Callable[[Any], Any] | None


class _Text:
    """The text of a statement for one dialect and certain numbers of values, and where its values come from."""

    def __init__(self, statement: Any, dialect: Dialect, parameters: Mapping[str, Any]) -> None:
        compiled = statement.compile(dialect=dialect)
        if compiled.insert_prefetch or compiled.update_prefetch:
            raise ValueError(f"a column of this statement has a default, which is not computed: {compiled}")
        expanded = compiled.construct_expanded_state(dict(parameters))
        self.text: str = expanded.statement
        element_of = {
            element: (name, index)
            for name, elements in expanded.parameter_expansion.items()
            for index, element in enumerate(elements)
        }
        names: Sequence[str] = expanded.positiontup if compiled.positional else list(expanded.parameters)
        names = [name for name in names if name in element_of or name not in expanded.parameter_expansion]
        #: The names in the text; None if it has positions.
        self.names = None if compiled.positional else tuple(names)
        #: For each value the parameter, the index in its list, a constant if there is no such parameter, the processor.
        self.sources: list[tuple[str | None, int | None, Any, Processor]] = []
        for name in names:
            given, index = element_of.get(name, (name, None))
            processor = compiled.binds[given].type.dialect_impl(dialect).bind_processor(dialect)
            if given in parameters:
                self.sources.append((given, index, None, processor))
            else:
                constant = expanded.parameters[name]
                self.sources.append((None, None, processor(constant) if processor else constant, None))
        #: By the names of parameters.
        self.types = {name: bind.type for name, bind in compiled.binds.items()}
        self._columns = list(statement.selected_columns) if isinstance(statement, sa.SelectBase) else []
        self._make: Callable[[Sequence[Any]], Any] | None = None

    def execute(self, connection: Connection, parameters: Mapping[str, Any]) -> CompiledResult:
        values = self._values(parameters)
        if not self._columns:
            return CompiledResult((), run(connection, self.text, values).rowcount)
        answer = run(connection, self.text, values)
        if self._make is None:
            self._make = _maker(self._columns, connection.dialect, answer.types)
        return CompiledResult([self._make(row) for row in answer.rows], answer.rowcount)

    def _values(self, parameters: Mapping[str, Any]) -> Any:
        values = []
        for name, index, value, processor in self.sources:
            if name is not None:
                value = parameters[name] if index is None else parameters[name][index]
                if processor is not None:
                    value = processor(value)
            values.append(value)
        return tuple(values) if self.names is None else dict(zip(self.names, values, strict=True))


#: What inserts rows of a JSON text: the beginning, the values, and the columns of the rows with their types.
_ROWS = "%(rows)s"
_SELECT_GIVEN = "{}SELECT {} FROM json_to_recordset(%(rows)s::JSON) AS given ({})"


class _RowsText:
    """The text of an INSERT for one dialect, of any number of rows."""

    #: Rows of one statement.
    _most = _FEW_ROWS

    def __init__(self, one: _Text) -> None:
        """Take the text of one row."""
        self._one = one.text
        self._columns = [(name, processor) for name, _, _, processor in one.sources if name is not None]
        self._names = [name for name, _ in self._columns]
        before, _, self._row = one.text.partition(" VALUES ")
        self._before = before + " "

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(rows), self._most):
            values = self.no_values()
            text = self.add_to(values, "", rows[start : start + self._most])
            run(connection, text, _parameters(values))

    def no_values(self) -> Any:
        """Return what values of a statement are added to: a dictionary, or a list if the text has positions."""
        return {}

    def add_to(self, values: Any, prefix: str, rows: Sequence[Mapping[str, Any]]) -> str:
        """Return the text for a few rows, and add its values to ``values``, under names with the prefix."""
        raise NotImplementedError

    def _processed(self, rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        return [[row[name] if of is None else of(row[name]) for name, of in self._columns] for row in rows]


class _RowsWithPositions(_RowsText):
    """That of drivers whose texts have positions; many rows are given to them one by one."""

    def __init__(self, one: _Text) -> None:
        super().__init__(one)
        self._texts: dict[int, str] = {}

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) > self._most:
            run(connection, self._one, [tuple(row) for row in self._processed(rows)], many=True)
        else:
            super().execute(connection, rows)

    def no_values(self) -> Any:
        return []

    def add_to(self, values: Any, prefix: str, rows: Sequence[Mapping[str, Any]]) -> str:
        del prefix
        for row in self._processed(rows):
            values.extend(row)
        text = self._texts.get(len(rows))
        if text is None:
            text = self._texts[len(rows)] = f"{self._before}VALUES {', '.join([self._row] * len(rows))}"
        return text


class _RowsInText(_RowsText):
    """That of a driver written in Python, which puts the values into the text itself.

    It converts each value by itself, which takes most of its time.  So numbers are in its text already, and texts that
    are equal in a column are given to it once.
    """

    _most = _MOST_ROWS

    def __init__(self, one: _Text) -> None:
        super().__init__(one)
        pieces = _NAMED.split(self._row)
        #: What is around the values of a row, and their places among the columns.
        self._around = pieces[::2]
        self._order = [self._names.index(name) for name in pieces[1::2]]

    def add_to(self, values: Any, prefix: str, rows: Sequence[Mapping[str, Any]]) -> str:
        names: dict[tuple[int, Any], str] = {}
        before, *around = self._around
        texts = []
        for row in self._processed(rows):
            text = before
            for column, after in zip(self._order, around, strict=True):
                value = row[column]
                if type(value) is int:
                    text += f"{value}{after}"
                elif value is None:
                    text += f"NULL{after}"
                else:
                    name = names.get((column, value))
                    if name is None:
                        name = names[column, value] = f"{prefix}p{len(values)}"
                        values[name] = value
                    text += f"%({name})s{after}"
            texts.append(text)
        return f"{self._before}VALUES {', '.join(texts)}"


class _RowsOfJson(_RowsText):
    """That of PostgreSQL: all rows are one value, so that there is one text, which its driver prepares.

    The driver takes time for each value, and more for each text that it has not prepared.
    """

    _most = _MOST_ROWS

    def __init__(self, one: _Text, dialect: Dialect) -> None:
        super().__init__(one)
        columns, taken = [], {}
        for number, (name, _) in enumerate(self._columns):
            type_, cast = one.types[name], ""
            if isinstance(type_, sa.JSON):
                # As the text that the column has; its processor makes what the driver takes for one value.
                type_, cast = sa.Text(), "::JSON"
                self._columns[number] = (name, _json_text)
            columns.append(f'"{name}" {type_.compile(dialect)}')
            taken[name] = f'given."{name}"{cast}'
        values = _NAMED_WITH_TYPE.sub(lambda found: taken[found[1]], self._row[1:-1])
        self._select = _SELECT_GIVEN.format(self._before, values, ", ".join(columns))

    def add_to(self, values: Any, prefix: str, rows: Sequence[Mapping[str, Any]]) -> str:
        given = [dict(zip(self._names, row, strict=True)) for row in self._processed(rows)]
        values[f"{prefix}rows"] = _json_text(given)
        return self._select.replace(_ROWS, f"%({prefix}rows)s")


def _rows_text(statement: sa.Insert, dialect: Dialect, row: Mapping[str, Any]) -> _RowsText:
    """Return the text of an INSERT; ``row`` is one to compile it with."""
    one = _Text(statement, dialect, row)
    if one.names is None:
        return _RowsWithPositions(one)
    return _RowsOfJson(one, dialect) if dialect.name == "postgresql" else _RowsInText(one)


def _json_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _parameters(values: Any) -> Any:
    """Return values as the driver takes them: a list would be many sets of values."""
    return tuple(values) if isinstance(values, list) else values


def _maker(columns: Sequence[Any], dialect: Dialect, types: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """Return what makes a named tuple of a row of these columns, whose types are the driver's."""
    row_type: Any = collections.namedtuple("Row", [column.key for column in columns])  # type: ignore[misc]
    make: Callable[[Sequence[Any]], Any] = row_type._make
    found = [
        column.type.dialect_impl(dialect).result_processor(dialect, type_)
        for column, type_ in zip(columns, types, strict=True)
    ]
    processors = [(index, processor) for index, processor in enumerate(found) if processor is not None]
    if not processors:
        return make

    def processed(row: Sequence[Any]) -> Any:
        values = list(row)
        for index, processor in processors:
            values[index] = processor(values[index])
        return make(values)

    return processed


class _Answer(NamedTuple):
    """What the driver has returned."""

    rows: Sequence[Any]
    #: The number of rows that a change has matched.
    rowcount: int
    #: The driver's types of the columns.
    types: Sequence[Any]


def run(connection: Connection, text: str, values: Any, *, many: bool = False) -> _Answer:
    """Execute a text of the driver, for each of ``values`` if there are many; raises what SQLAlchemy raises."""
    if _observed(connection):
        result = connection.exec_driver_sql(text, values)
        types = _types(result.cursor)
        return _Answer(result.all() if types else (), result.rowcount, types)
    cursor = None
    try:
        cursor = connection.connection.cursor()
        if many:
            cursor.executemany(text, values)
        else:
            cursor.execute(text, values)
        types = _types(cursor)
        answer = _Answer(cursor.fetchall() if types else (), cursor.rowcount, types)
        cursor.close()
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, cursor, text, values, error) from error
    except BaseException as error:
        if not isinstance(error, Exception):  # an interrupt: the answer may still arrive, as that of the next statement
            connection.invalidate(error)
        raise
    return answer


def _types(cursor: Any) -> Sequence[Any]:
    """Return the driver's types of the columns of the cursor's rows; empty after a statement without rows."""
    return [column[1] for column in cursor.description or ()] if cursor is not None else ()


def _wrapped(connection: Connection, cursor: Any, text: str, values: Any, error: Exception) -> BaseException:
    """Return SQLAlchemy's form of an error of the driver; the connection is not used again if it is lost."""
    lost = connection.dialect.is_disconnect(error, connection.connection, cursor)  # type: ignore[arg-type]
    if lost:
        connection.invalidate(error)
    elif cursor is not None:
        with contextlib.suppress(connection.dialect.loaded_dbapi.Error):
            cursor.close()
    wrapped: BaseException = exc.DBAPIError.instance(
        *(text, values, error, connection.dialect.loaded_dbapi.Error),
        hide_parameters=connection.engine.hide_parameters,
        connection_invalidated=lost,
        dialect=connection.dialect,
    )
    return wrapped


def _observed(connection: Connection) -> bool:
    """Whether anything in this process watches the statements of the connection's engine."""
    events, driver_events = connection.dispatch, connection.dialect.dispatch
    return bool(
        events.before_cursor_execute
        or events.after_cursor_execute
        or driver_events.do_execute
        or driver_events.handle_error
        or connection.engine.logger.isEnabledFor(logging.INFO)
    )
