"""What tests of commands and of the schema share: a configuration, and statements."""

from __future__ import annotations

import sqlalchemy as sa

#: The owner of consumers that are completed.
OWNER = "incomplete-owner"


def written(directory, url, more=""):
    """Return the path of a configuration for the database of this URL."""
    path = directory / "placement.conf"
    path.write_text(
        f"[placement_database]\nconnection = {url}\nmax_retries = 0\n{more}\n"
        f"[placement]\nincomplete_consumer_project_id = {OWNER}\nincomplete_consumer_user_id = {OWNER}\n"
        "[of_another_program]\nunknown = 1\n"
    )
    return path


def execute(engine, *statements):
    """Execute statements in one transaction, and return the rows of the last one; None if it returns none."""
    with engine.begin() as connection:
        for statement in statements:
            result = connection.execute(sa.text(statement) if isinstance(statement, str) else statement)
        return result.all() if result.returns_rows else None
