"""An empty revision; the v1 extension creates the tables of the history, without a revision."""

from __future__ import annotations

revision = "b91d4e7f20ac"
down_revision = "e7a1c93f04b6"


def upgrade() -> None:
    """Do nothing."""


def downgrade() -> None:
    """Do nothing."""
