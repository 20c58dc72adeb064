"""The number of what is now the migration of the extension v1."""

from __future__ import annotations

revision = "e7a1c93f04b6"
down_revision = "d52f1b8c7e40"


def upgrade() -> None:
    """Do nothing."""


def downgrade() -> None:
    """Do nothing."""
