"""The database: connections, transactions, the feed of changes, and the tables.

database, connect  a database, and the one that the configuration names
batches            statements about many values
dry_run            requests that are rolled back
shared_run         work that one thread does for all that asked for it before it began
feed               which providers each transaction changed, for the index
writes             a write: its transaction, attempts at it, and several writes in one transaction
engine             connections, statements and errors of each kind of database and driver
schema             the tables, their revision, and the clock of a database
upkeep             the rows that every database has, and what commands complete and remove
migrations         the revisions, for alembic
"""
