"""The number of what is now in the tables of the extension v1, which have no revision."""

from __future__ import annotations

revision = "e7a1c93f04b6"
down_revision = "d52f1b8c7e40"


def upgrade() -> None:
    """Do nothing."""


def downgrade() -> None:
    """Do nothing."""
