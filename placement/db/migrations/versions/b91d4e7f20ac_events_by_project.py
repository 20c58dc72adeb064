"""An empty revision: its table belongs to the extension v1, and has no revision."""

from __future__ import annotations

revision = "b91d4e7f20ac"
down_revision = "e7a1c93f04b6"


def upgrade() -> None:
    """Do nothing."""


def downgrade() -> None:
    """Do nothing."""
