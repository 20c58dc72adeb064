"""An empty revision; the v1 extension creates the tables of the history, without a revision."""

from __future__ import annotations

revision = "e7a1c93f04b6"
down_revision = "d52f1b8c7e40"


def upgrade() -> None:
    """Do nothing."""


def downgrade() -> None:
    """Do nothing."""
