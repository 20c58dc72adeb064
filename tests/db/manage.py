"""A configuration and statements for tests of the commands and the schema."""

from __future__ import annotations

import sqlalchemy as sa

#: The project and user of incomplete consumers.
OWNER = "incomplete-owner"


def write_configuration(directory, url, options=""):
    """Write a configuration for the database with this URL; return its path."""
    path = directory / "placement.conf"
    path.write_text(
        f"[placement_database]\nconnection = {url}\nmax_retries = 0\n{options}\n"
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
