"""What alembic runs for every command; placement.db.schema hands it a connection, and commits."""

from alembic import context

from placement.db import tables

# Where DDL can be rolled back, all revisions of one run are one transaction; alembic does not expect it of SQLite.
connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=tables.metadata,
    transactional_ddl=connection.dialect.name in ("postgresql", "sqlite"),
)
with context.begin_transaction():
    context.run_migrations()
