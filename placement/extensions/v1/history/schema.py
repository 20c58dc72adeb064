"""The tables of the history, as the core's commands take them."""

from __future__ import annotations

from placement.db.schema.schema import Addition
from placement.extensions.v1.history.tables import TABLES


def _migrate() -> None:
    from placement.extensions.v1.history import migration  # imports alembic

    migration.upgrade()


ADDITION = Addition(TABLES, _migrate)
