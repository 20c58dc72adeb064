#!/bin/sh
# Create the database and its users from the variables that MariaDB's own image reads.
set -eu
data=/var/lib/mysql
if [ ! -d $data/mysql ]; then
    test -n "$MARIADB_RANDOM_ROOT_PASSWORD"
    root=${MARIADB_ROOT_HOST:-%}
    mariadb-install-db --datadir=$data --skip-test-db --auth-root-authentication-method=socket >/dev/null
    cat > /tmp/first.sql <<SQL
CREATE DATABASE $MARIADB_DATABASE;
CREATE USER '$MARIADB_USER'@'%' IDENTIFIED BY '$MARIADB_PASSWORD';
GRANT ALL ON $MARIADB_DATABASE.* TO '$MARIADB_USER'@'%';
SQL
    if [ "$root" != localhost ]; then
        password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
        echo "GENERATED ROOT PASSWORD: $password"
        cat >> /tmp/first.sql <<SQL
CREATE USER 'root'@'$root' IDENTIFIED BY '$password';
GRANT ALL ON *.* TO 'root'@'$root' WITH GRANT OPTION;
SQL
    fi
    set -- "$@" --init-file=/tmp/first.sql
fi
exec "$@" --bind-address=0.0.0.0 --skip-name-resolve
