"""The steps that bring the tables of the Bare Metal API up to date; each is taken once."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement.db.migrations import steps

_MYSQL = ("mysql", "mariadb")


def upgrade() -> None:
    """Create both tables, in a context of alembic.

    They exist already, with their rows, where the extension was left out for some time.  What the rows say about their
    providers and consumers is read from those, so nothing has to be put in line with what happened meanwhile.
    """
    _nodes()
    _allocations()


def _nodes() -> None:
    provider = _like("resource_providers", "uuid")
    steps.create_table(
        "baremetal_nodes",
        _precise("created_at", nullable=False),
        _precise("updated_at"),
        sa.Column("id", sa.Integer, primary_key=True, nullable=False),
        sa.Column("uuid", provider, nullable=False),
        sa.Column("name", _exact(255)),
        sa.Column("driver", _exact(255), nullable=False),
        sa.Column("resource_class", _exact(80)),
        sa.Column("owner", _exact(255)),
        sa.Column("lessee", _exact(255)),
        sa.Column("parent_node", provider),
        sa.Column("provision_state", sa.String(32)),
        sa.Column("target_provision_state", sa.String(32)),
        _precise("provision_updated_at"),
        sa.Column("power_state", sa.String(32)),
        sa.Column("target_power_state", sa.String(32)),
        sa.Column("maintenance", sa.Boolean, nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sa.UniqueConstraint("uuid", name="uniq_baremetal_nodes0uuid"),
        sa.UniqueConstraint("name", name="uniq_baremetal_nodes0name"),
        sqlite_autoincrement=True,
    )
    table = "baremetal_nodes"
    steps.create_index("baremetal_nodes_class_state_idx", table, ["resource_class", "provision_state"])
    steps.create_index("baremetal_nodes_owner_idx", table, ["owner", "resource_class", "provision_state"])
    steps.create_index("baremetal_nodes_lessee_idx", table, ["lessee", "resource_class", "provision_state"])


def _allocations() -> None:
    steps.create_table(
        "baremetal_allocations",
        _precise("created_at", nullable=False),
        _precise("updated_at"),
        sa.Column("id", sa.Integer, primary_key=True, nullable=False),
        sa.Column("uuid", _like("allocations", "consumer_id"), nullable=False),
        sa.Column("name", _exact(255)),
        sa.Column("node_uuid", _like("resource_providers", "uuid")),
        sa.Column("resource_class", _exact(80)),
        sa.Column("owner", _exact(255)),
        sa.Column("traits", sa.JSON, nullable=False),
        sa.Column("candidate_nodes", sa.JSON, nullable=False),
        sa.Column("extra", sa.JSON, nullable=False),
        sa.Column("last_error", _long_text()),
        sa.UniqueConstraint("uuid", name="uniq_baremetal_allocations0uuid"),
        sa.UniqueConstraint("name", name="uniq_baremetal_allocations0name"),
        sa.UniqueConstraint("node_uuid", name="uniq_baremetal_allocations0node_uuid"),
        sqlite_autoincrement=True,
    )
    steps.create_index("baremetal_allocations_class_idx", "baremetal_allocations", ["resource_class"])
    steps.create_index("baremetal_allocations_owner_idx", "baremetal_allocations", ["owner"])


def _precise(name: str, **options: Any) -> sa.Column[Any]:
    """Return a column of dates with microseconds."""
    return sa.Column(name, sa.DateTime().with_variant(mysql.DATETIME(fsp=6), *_MYSQL), **options)


def _exact(length: int) -> sa.types.TypeEngine[str]:
    """Return the type of texts that hold every character and are compared exactly, in any database."""
    exact = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.Unicode(length).with_variant(exact, *_MYSQL)


def _long_text() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), *_MYSQL)


def _like(table: str, column: str) -> sa.types.TypeEngine[str]:
    """Return the type of uuids with the collation of the column that they are joined with.

    The database's default may be another by now, since a backup was restored into a new database or the default was
    changed, and MySQL does not compare columns of two collations of one character set ("Illegal mix of collations").
    """
    if op.get_bind().dialect.name not in _MYSQL:
        return sa.String(36)
    found = sa.text(
        "SELECT character_set_name, collation_name FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = :table AND column_name = :column"
    )
    charset, collation = op.get_bind().execute(found, {"table": table, "column": column}).one()
    return mysql.VARCHAR(36, charset=charset, collation=collation)
