"""Connections, statements and errors of each kind of database and driver.

dialects, timeouts, tls      engines for each kind of database and driver, time limits, and certificates
driver_errors, error_codes   the classification of errors of databases and drivers
compiled                     statements that are compiled once, for claims
bounded_psycopg, freshness   psycopg's limit on silent servers, and the replacement of stale connections
bulkhead                     the limit on the threads that use the database at the same time
statements                   SQL statements in the log, with comments on their source, and as timings
"""
