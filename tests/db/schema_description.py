"""Descriptions of schemas that are the same for every kind of database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import sqlalchemy as sa


def describe(engine: sa.Engine) -> dict[str, list[str]]:
    """Return a line for each column, key and index, by table."""
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        return {table: list(_lines(inspector, table)) for table in sorted(inspector.get_table_names())}


def render(tables: dict[str, list[str]]) -> str:
    """Return descriptions of tables as a text."""
    return "\n\n".join("\n    ".join([table, *lines]) for table, lines in tables.items()) + "\n"


def _lines(inspector: sa.Inspector, table: str) -> Iterator[str]:
    yield from (_column(column) for column in inspector.get_columns(table))
    yield f"primary key {_names(inspector.get_pk_constraint(table)['constrained_columns'])}"
    unique = {key["name"]: key["column_names"] for key in inspector.get_unique_constraints(table)}
    yield from sorted(f"unique {name} {_names(columns)}" for name, columns in unique.items())
    # MySQL and PostgreSQL list the index of a unique constraint among the indexes as well.
    indexes = {index["name"]: index["column_names"] for index in inspector.get_indexes(table)}
    yield from sorted(f"index {name} {_names(columns)}" for name, columns in indexes.items() if name not in unique)
    yield from sorted(_foreign_key(key) for key in inspector.get_foreign_keys(table))


def _column(column: Any) -> str:
    kind = column["type"]
    # In SQLAlchemy 2.0 Float is a subclass of Numeric, in 2.1 it is not.
    words = [column["name"], "Float" if isinstance(kind, sa.Float) else kind._type_affinity.__name__]
    if getattr(kind, "length", None):
        words[-1] += f"({kind.length})"
    if not column["nullable"]:
        words.append("required")
    # PostgreSQL reports its sequence as a default.
    if column["default"] is not None and "nextval" not in str(column["default"]):
        words.append(f"default {_constant(str(column['default']))}")
    return " ".join(words)


def _constant(default: str) -> str:
    """Return a default under one name: each kind of database has its own name for the time of the statement."""
    return "now" if default.lower().startswith(("current_timestamp", "now(")) else default.strip("'")


def _foreign_key(key: Any) -> str:
    # MySQL and PostgreSQL generate names for unnamed keys; the schema names only this one.
    name = f" {key['name']}" if key["name"] == "consumers_consumer_type_id_fkey" else ""
    target = f"{key['referred_table']} {_names(key['referred_columns'])}"
    return f"foreign key{name} {_names(key['constrained_columns'])} -> {target}"


def _names(columns: Iterable[Any]) -> str:
    return f"({', '.join(map(str, columns))})"
