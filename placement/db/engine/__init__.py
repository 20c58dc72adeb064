"""Connections, statements and errors of each kind of database and driver.

dialects, timeouts, tls      engines for each kind of database and driver, time limits, and certificates
driver_errors, error_codes   the classification of errors of databases and drivers
compiled                     statements that are compiled once, for claims
bounded_psycopg, freshness   limits on silent servers, and connections that must not be used again
bulkhead                     the limit on threads that use the database at a time
statements                   SQL statements in the log, with comments and as timings
"""
