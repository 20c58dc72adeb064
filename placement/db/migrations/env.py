"""Runs alembic's commands on the connection of placement.db.schema.schema, which commits."""

from alembic import context

from placement.db.schema import tables

# Where DDL is transactional, all revisions of a run are one transaction: that of placement.db.schema.schema.
context.configure(connection=context.config.attributes["connection"], target_metadata=tables.metadata)
with context.begin_transaction():
    context.run_migrations()
