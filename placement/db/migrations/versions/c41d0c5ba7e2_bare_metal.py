"""An empty revision; the baremetal extension creates its tables, without a revision."""

from __future__ import annotations

revision = "c41d0c5ba7e2"
down_revision = "a3683ed2ecbc"


def upgrade() -> None:
    """Do nothing."""


def downgrade() -> None:
    """Do nothing."""
