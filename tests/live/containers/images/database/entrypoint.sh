#!/bin/sh
# Make the database and its user, as the image of MariaDB does with these variables; root comes in by the socket only.
set -eu
data=/var/lib/mysql
if [ ! -d $data/mysql ]; then
    test -n "$MARIADB_RANDOM_ROOT_PASSWORD"
    mariadb-install-db --datadir=$data --skip-test-db --auth-root-authentication-method=socket >/dev/null
    cat > /tmp/first.sql <<SQL
CREATE DATABASE $MARIADB_DATABASE;
CREATE USER '$MARIADB_USER'@'%' IDENTIFIED BY '$MARIADB_PASSWORD';
GRANT ALL ON $MARIADB_DATABASE.* TO '$MARIADB_USER'@'%';
SQL
    set -- "$@" --init-file=/tmp/first.sql
fi
exec "$@" --bind-address=0.0.0.0 --skip-name-resolve
