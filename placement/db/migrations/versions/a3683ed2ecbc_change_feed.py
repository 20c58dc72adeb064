"""The change feed: tables that other implementations do not know."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from alembic import op

from placement.db.migrations import steps

revision = "a3683ed2ecbc"
down_revision = "a082b8bb98d0"

_instance = sa.table("feed_instance", sa.column("uuid"))


def upgrade() -> None:
    """Create the feed's tables, and insert the identity of the feed.

    The tables already exist if the database was stamped with a revision of another implementation and now returns.  The
    feed lacks the changes of that time, so the new identity makes every reader start over.
    """
    steps.create_table(
        "change_writers",
        sa.Column("id", sa.Integer, primary_key=True, nullable=False),
        sa.Column("started_at", sa.DateTime, nullable=False, server_default=sa.func.now()),
        sa.Column("seen_at", sa.DateTime, nullable=False, server_default=sa.func.now()),
        sqlite_autoincrement=True,
    )
    steps.create_table(
        "provider_changes",
        sa.Column("writer_id", sa.Integer, sa.ForeignKey("change_writers.id"), primary_key=True, nullable=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("provider_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("what", sa.String(8), nullable=False),
    )
    steps.create_table("feed_instance", sa.Column("uuid", sa.String(36), primary_key=True, nullable=False))
    op.execute(sa.delete(_instance))
    op.execute(sa.insert(_instance).values(uuid=str(uuid.uuid4())))


def downgrade() -> None:
    """Drop the feed's tables."""
    steps.drop_table("provider_changes")
    steps.drop_table("change_writers")
    steps.drop_table("feed_instance")
