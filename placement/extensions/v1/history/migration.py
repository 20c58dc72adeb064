"""The steps that bring the tables of the history up to date; each is taken once."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from placement.db.migrations import steps

_PRECISE = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
_EXACT = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
_NAME = sa.Unicode(255).with_variant(mysql.VARCHAR(255, **_EXACT), "mysql", "mariadb")
_JSON = sa.Text().with_variant(mysql.MEDIUMTEXT(**_EXACT), "mysql", "mariadb")


def upgrade() -> None:
    """Create the tables, in a context of alembic.

    They exist already, with their rows, where the extension was left out for some time.
    """
    steps.create_table(
        "events",
        sa.Column("writer_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("ordinal", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("at", _PRECISE, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("uuid", sa.String(36), nullable=True),
        sa.Column("name", _NAME, nullable=True),
        sa.Column("project", _NAME, nullable=True),
        sa.Column("before_generation", sa.Integer, nullable=True),
        sa.Column("generation", sa.Integer, nullable=True),
        sa.Column("changes", _JSON, nullable=False),
        sa.Column("request", _JSON, nullable=True),
        sa.Column("request_ordinal", sa.Integer, nullable=False),
    )
    steps.create_index("events_uuid_idx", "events", ["uuid"])
    steps.create_index("events_name_idx", "events", ["name"])
    steps.create_table(
        "event_order",
        sa.Column("position", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("writer_id", sa.Integer, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("events", sa.Integer, nullable=False),
        sa.Column("at", _PRECISE, nullable=False),
        sa.UniqueConstraint("writer_id", "seq", name="uniq_event_order0writer_seq"),
    )
    steps.create_index("event_order_at_idx", "event_order", ["at"])
    steps.create_table(
        "usage_samples",
        sa.Column("at", _PRECISE, primary_key=True, nullable=False),
        sa.Column("resource_class", sa.String(255), primary_key=True, nullable=False),
        sa.Column("capacity", sa.BigInteger, nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False),
    )
    # The positions of a project's events are found in it alone.
    steps.create_index("events_project_idx", "events", ["project", "writer_id", "seq", "ordinal"])
    # Null in the events that are there, and in those of processes of earlier releases.
    steps.add_column("events", sa.Column("row_id", sa.Integer, nullable=True))
