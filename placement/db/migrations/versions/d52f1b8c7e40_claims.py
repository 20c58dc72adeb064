"""The table of claim records, with the expiry of leases, which other implementations do not have."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from placement.db.migrations import steps

revision = "d52f1b8c7e40"
down_revision = "c41d0c5ba7e2"

_PRECISE = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def upgrade() -> None:
    """Create the table.

    The table already exists, with its rows, if the database was stamped with a revision of another implementation
    before this upgrade.  The foreign key has deleted the rows of consumers that were deleted meanwhile.
    """
    steps.create_table(
        "claims",
        sa.Column(
            "consumer_id",
            sa.Integer,
            sa.ForeignKey("consumers.id", name="claims_consumer_id_fkey", ondelete="CASCADE"),
            primary_key=True,
            nullable=False,
            autoincrement=False,
        ),
        sa.Column("content", sa.String(64), nullable=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("mappings", sa.JSON, nullable=False),
        sa.Column("expires_at", _PRECISE, nullable=True),
    )
    steps.create_index("claims_expires_at_idx", "claims", ["expires_at"])


def downgrade() -> None:
    """Drop the table."""
    steps.drop_table("claims")
