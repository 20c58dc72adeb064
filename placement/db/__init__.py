"""The database: connections, transactions, the feed of changes, and the tables.

database, connect           a database, and the one that the configuration names
transaction, retry          an attempt of a write, and when it is run again
driver_errors, error_codes  what an error of a database or its driver means
dialects, timeouts          what differs between kinds of databases and drivers
bounded_psycopg, freshness  limits on silent servers, and connections that must not be used again
bulkhead                    the limit on threads that use the database at a time
statements                  SQL statements in the log, with comments, and as timings
feed                        which providers each transaction changed, for the index
names, sweep                ids of projects, users, consumer types and aggregates, and their removal
standard                    the rows that every database has
tables, schema, migrations  the tables, their revision, and the revisions
online                      completion of rows that older releases left incomplete
sqlite_file                 the mode of a SQLite file
"""
