"""What brings the tables of the history up to date, with the rows that they have."""

from __future__ import annotations

from alembic import op

from placement.db.migrations import steps
from placement.extensions.v1.history.tables import TABLES


def upgrade() -> None:
    """Create what is missing, in a context of alembic.

    Where the extension was left out for some time, or was one of an earlier release, the tables exist.  Columns that
    they lack are null in the rows that are there, and in those of processes of that release.
    """
    for table in TABLES:
        table.create(op.get_bind(), checkfirst=True)
        for column in table.columns:
            steps.add_column(table.name, column)
        for index in table.indexes:
            steps.create_index(str(index.name), table.name, [column.name for column in index.columns])
