"""Consumer types."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from placement.db.migrations import steps

revision = "422ece571366"
down_revision = "b5c396305c25"


def upgrade() -> None:
    """Add the table of types, and a consumer's reference to it."""
    steps.create_table(
        "consumer_types",
        sa.Column("created_at", sa.DateTime),
        sa.Column("updated_at", sa.DateTime),
        sa.Column("id", sa.Integer, primary_key=True, nullable=False),
        sa.Column("name", sa.Unicode(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
    )
    # A batch, because SQLite can add a foreign key only by recreating the table.
    with op.batch_alter_table("consumers") as consumers:
        if not steps.has_column("consumer_type_id", "consumers"):
            consumers.add_column(sa.Column("consumer_type_id", sa.Integer))
        if not steps.has_foreign_key("consumers_consumer_type_id_fkey", "consumers"):
            consumers.create_foreign_key(
                "consumers_consumer_type_id_fkey", "consumer_types", ["consumer_type_id"], ["id"]
            )
    steps.create_index("consumers_consumer_type_id_idx", "consumers", ["consumer_type_id"])
