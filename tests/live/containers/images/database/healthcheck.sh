#!/bin/sh
# Whether the server answers; the options are those of the image of MariaDB.
exec mariadb-admin --user="$MARIADB_USER" --password="$MARIADB_PASSWORD" ping
