"""The database: connections, transactions, the change feed and the tables.

database, connect  a database, and the one that the configuration names
batches            statements with lists of values of any length
dry_run            writes that are rolled back
shared_run         work that one thread runs for all threads that wait for it
feed               the change feed: which providers each transaction changed
writes             a write: its transaction, its attempts, and several writes in one transaction
engine             connections, statements and errors of each kind of database and driver
schema             the tables, their revision, and the database's clock
upkeep             standard rows, online data migrations, and the removal of unused names
migrations         the revisions, for alembic
"""
