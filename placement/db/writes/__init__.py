"""A write, from its first attempt to its COMMIT.

transaction, attempt, retry  a transaction, one attempt at a write, and its retries
notes, author                the changes of a transaction, object by object, and their author
queue                        the work of several threads, done by one of them as a batch
names                        ids of projects, users, consumer types and aggregates
expired_writers              termination of feed writers with expired leases
"""
