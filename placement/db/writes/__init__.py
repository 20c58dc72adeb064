"""A write, from its first attempt to its COMMIT.

transaction, attempt, retry  a transaction, one attempt at a write, and when it runs again
notes, author                what a transaction changes, object by object, and in whose name
queue                        the work of several threads, which one of them does as a batch
names                        ids of projects, users, consumer types and aggregates
expired_writers              writers of the feed that have ended
"""
