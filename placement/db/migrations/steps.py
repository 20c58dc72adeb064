"""Idempotent steps of a revision.

MySQL commits every change of the schema implicitly: a run that is killed may have completed only some steps of a
revision, and the next run continues after them.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op


def create_table(name: str, *items: sa.schema.SchemaItem, **options: Any) -> None:
    """Create the table, unless it exists."""
    if not has_table(name):
        op.create_table(name, *items, **options)


def drop_table(name: str) -> None:
    """Drop the table, if it exists."""
    if has_table(name):
        op.drop_table(name)


def create_index(name: str, table: str, columns: list[str]) -> None:
    """Create the index, unless the table has one of this name."""
    if not has_index(name, table):
        op.create_index(name, table, columns)


def drop_index(name: str, table: str) -> None:
    """Drop the index, if the table has it."""
    if has_index(name, table):
        op.drop_index(name, table)


def has_table(name: str) -> bool:
    return sa.inspect(op.get_bind()).has_table(name)


def has_index(name: str, table: str) -> bool:
    return any(index["name"] == name for index in sa.inspect(op.get_bind()).get_indexes(table))


def has_column(name: str, table: str) -> bool:
    return any(column["name"] == name for column in sa.inspect(op.get_bind()).get_columns(table))


def has_foreign_key(name: str, table: str) -> bool:
    return any(key["name"] == name for key in sa.inspect(op.get_bind()).get_foreign_keys(table))
