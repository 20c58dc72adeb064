"""One database with its schema for many tests: emptying it takes milliseconds, creating it half a second."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from placement.db.database import Database
from placement.db.schema.tables import change_writers, metadata, provider_changes, resource_providers
from placement.db.upkeep import standard
from tests import made
from tests.servers import Server

#: An id that no counter reaches: counters continue from test to test, so a small id may belong to another row.
NOWHERE = 777_777


class ReusedDatabase:
    """A database that is like new for each test, except that the id counters of MariaDB and PostgreSQL continue."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._make()

    def clean(self) -> str:
        """Remove all rows that a new database would not contain, and return the URL."""
        try:
            intact = self._empty()
        except exc.DBAPIError:  # a test left a lock, or dropped a table
            intact = False
        if not intact:
            self.drop()
            self._make()
        return self.url

    def drop(self) -> None:
        """Remove the database."""
        self.database.dispose()
        self._server.drop_database(self.url)

    def _make(self) -> None:
        self.url = self._server.create_database()
        self.database = made.attach_extensions(Database(self.url))
        made.sync(self.database.engine)
        standard.insert(self.database)
        with self.database.engine.begin() as connection:
            for table in (provider_changes, change_writers):
                connection.execute(sa.delete(table))
            self._at_first = {table: _rows(connection, table) for table in metadata.sorted_tables}
        empty_tables = [table for table, rows in self._at_first.items() if not rows]
        #: The names of the initially empty tables that contain rows.
        self._filled = sa.union_all(
            *(
                sa.select(sa.literal(table.name)).where(sa.exists(sa.select(1).select_from(table)))
                for table in empty_tables
            )
        )

    def _empty(self) -> bool:
        """Delete the rows that a new database lacks; return whether the rows of a new one are complete."""
        with self.database.engine.begin() as connection:
            filled = set(connection.scalars(self._filled))
            if resource_providers.name in filled:
                unrelated = {"root_provider_id": None, "parent_provider_id": None}
                connection.execute(sa.update(resource_providers).values(unrelated))
            complete = True
            for table, first in reversed(self._at_first.items()):
                present = _rows(connection, table) if first else []
                if present != first:
                    key = table.primary_key.columns[0]
                    connection.execute(sa.delete(table).where(key.not_in([getattr(row, key.name) for row in first])))
                    complete = complete and _rows(connection, table) == first
                elif table.name in filled:
                    connection.execute(sa.delete(table))
            return complete


def _rows(connection: sa.Connection, table: sa.Table) -> list[sa.Row[Any]]:
    return list(connection.execute(sa.select(table).order_by(*table.primary_key.columns)))
