"""What alembic runs for every command; placement.db.schema hands it a connection, and commits."""

from alembic import context

from placement.db import tables

# Where DDL can be rolled back, all revisions of one run are one transaction: that of placement.db.schema.
context.configure(connection=context.config.attributes["connection"], target_metadata=tables.metadata)
with context.begin_transaction():
    context.run_migrations()
