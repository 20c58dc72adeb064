"""Environment in which alembic runs the revisions, on a connection of placement.db.schema.schema."""

from alembic import context

from placement.db.schema import tables

# Where DDL is transactional, all revisions of a run are one transaction, which placement.db.schema.schema commits.
context.configure(connection=context.config.attributes["connection"], target_metadata=tables.metadata)
with context.begin_transaction():
    context.run_migrations()
