#!/bin/sh
# Exit with 0 if the server responds.  The options, which MariaDB's own healthcheck.sh requires, are ignored.
exec mariadb-admin --user="$MARIADB_USER" --password="$MARIADB_PASSWORD" ping
