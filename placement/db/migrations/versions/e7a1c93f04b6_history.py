"""An empty revision: its tables belong to the extension v1, and have no revision."""

from __future__ import annotations

revision = "e7a1c93f04b6"
down_revision = "d52f1b8c7e40"


def upgrade() -> None:
    """Do nothing."""


def downgrade() -> None:
    """Do nothing."""
