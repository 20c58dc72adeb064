"""The database: connections, transactions, the feed of changes, and the tables.

database, connect           a database, and the one that the configuration names
transaction, attempt, retry a write: its transaction, one attempt at it, and when it is run again
joint_write, combining      writes of several threads in one transaction, and work that one thread does for others
shared_run                  work that one thread does for all that asked for it before it began
write_lock, dry_run         one thread at a time on SQLite, and requests that are rolled back
driver_errors, error_codes  what an error of a database or its driver means
dialects, timeouts, clock   what differs between kinds of databases and drivers, and the clock of a database
galera, tls                 sessions on a node of a cluster, and servers whose certificate is verified
compiled, packed            statements of every claim, and queries whose rows come as one text
bounded_psycopg, freshness  limits on silent servers, and connections that must not be used again
bulkhead                    the limit on threads that use the database at a time
statements, origin          SQL statements in the log, with comments and as timings, and who asked for them
feed, expired_writers       which providers each transaction changed, for the index, and writers that have ended
history, events             what each transaction changed, object by object, in whose name
event_order, event_sort     the order of events
event_watch, event_pruning  waiting for events, and the removal of old ones
usage_samples               what is used of each class, every ten minutes
names, sweep                ids of projects, users, consumer types and aggregates, and their removal
standard                    the rows that every database has
tables, schema, migrations  the tables, their revision, and the revisions
online                      completion of rows that older releases left incomplete
sqlite_file                 the mode of a SQLite file
"""
