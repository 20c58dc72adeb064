"""An index of the history by project, which has all that gives the positions of a project's events."""

from __future__ import annotations

from placement.db.migrations import steps

revision = "b91d4e7f20ac"
down_revision = "e7a1c93f04b6"


def upgrade() -> None:
    """Create the index; it exists already if the database was stamped back and returns now."""
    steps.create_index("events_project_idx", "events", ["project", "writer_id", "seq", "ordinal"])


def downgrade() -> None:
    """Drop the index."""
    steps.drop_index("events_project_idx", "events")
