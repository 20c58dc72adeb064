"""Connections, statements and errors of each kind of database and driver.

dialects, timeouts, tls      what differs between kinds of databases and drivers, time limits, and certificates
driver_errors, error_codes   what an error of a database or its driver means
compiled                     statements of every claim, which are compiled once
bounded_psycopg, freshness   limits on silent servers, and connections that must not be used again
bulkhead                     the limit on threads that use the database at a time
statements                   SQL statements in the log, with comments and as timings
"""
