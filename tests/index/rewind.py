"""A database that has lost its newest commits, or was restored from a backup, while processes use it.

All rows of some tables, and the next ids of the database, are saved and restored later.  Rows whose ids processes could
cache (projects, users, aggregates) are left out: other tests cover them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.database import Database
from placement.db.schema.tables import (
    allocations,
    change_writers,
    consumers,
    inventories,
    provider_changes,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

_TABLES = (
    *(resource_providers, inventories, allocations, consumers, resource_classes, traits, resource_provider_traits),
    *(resource_provider_aggregates, change_writers, provider_changes),
)
_TABLES_WITH_NEXT_ID = (resource_providers, change_writers)
_FOREIGN_KEY_CHECKS = {
    "sqlite": ("PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = ON"),
    "mysql": ("SET SESSION foreign_key_checks = 0", "SET SESSION foreign_key_checks = 1"),
    "postgresql": ("SET session_replication_role = replica", "SET session_replication_role = origin"),
}

State = dict[str, list[dict[str, Any]]]


def save(database: Database) -> State:
    """Return the committed state."""

    def rows(db: Connection, table: sa.Table) -> list[dict[str, Any]]:
        return [dict(row) for row in db.execute(sa.select(table).where(_is_added(table))).mappings()]

    return database.snapshot(lambda db: {table.name: rows(db, table) for table in _TABLES})


def restore(database: Database, state: State) -> None:
    """Restore the saved state, in one transaction."""
    with without_foreign_keys(database) as connection:
        for table in _TABLES:
            connection.execute(sa.delete(table).where(_is_added(table)))
            if state[table.name]:
                connection.execute(sa.insert(table), state[table.name])
    with database.engine.connect() as connection:
        for table in _TABLES_WITH_NEXT_ID:
            _reset_next_id(connection, table)


@contextlib.contextmanager
def without_foreign_keys(database: Database) -> Iterator[Connection]:
    """Provide a transaction without checks of foreign keys, as if rows had been lost later."""
    disable, enable = _FOREIGN_KEY_CHECKS[
        "mysql" if database.engine.dialect.name == "mariadb" else database.engine.dialect.name
    ]
    with database.engine.connect() as connection:
        cursor = connection.connection.cursor()  # outside of any transaction
        cursor.execute(disable)
        connection.connection.commit()
        try:
            with connection.begin():
                yield connection
        finally:
            cursor.execute(enable)
            connection.connection.commit()


def _is_added(table: sa.Table) -> sa.ColumnElement[bool]:
    """Return a condition for the rows that a new database does not contain."""
    standard = table in (resource_classes, traits)
    return table.c.name.startswith("CUSTOM_", autoescape=True) if standard else sa.true()


def _reset_next_id(connection: Connection, table: sa.Table) -> None:
    """Set the next id to the one after the highest id, as in the saved state."""
    with connection.begin():
        # PostgreSQL's sequence does not see ids that were inserted explicitly.
        highest = connection.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0
        name, next_id = table.name, max(highest, 0) + 1
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), {next_id}, false)")
        elif connection.dialect.name != "sqlite":
            connection.exec_driver_sql(f"ALTER TABLE {name} AUTO_INCREMENT = {next_id}")
        elif table is change_writers:
            connection.exec_driver_sql(f"UPDATE sqlite_sequence SET seq = {next_id - 1} WHERE name = '{name}'")
