"""The database: connections, transactions, the change feed and the tables.

database, connect  a database, and the connection to the configured one
batches            statements whose lists of values are too long for one statement
dry_run            writes that are rolled back
shared_run         work that one thread runs for all threads that wait for it
feed               the change feed: the providers that each transaction changed
writes             a write, from its first attempt to its COMMIT
engine             connections, statements and errors of each kind of database and driver
schema             the tables, the revision of the schema, and the database's clock
upkeep             standard rows, online data migrations, and the removal of unused names
migrations         the revisions, which alembic runs
"""
