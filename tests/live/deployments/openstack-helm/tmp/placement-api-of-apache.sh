#!/bin/bash
set -ex
cp -a $(type -p placement-api) /var/www/cgi-bin/placement/
if [ -f /etc/apache2/envvars ]; then
  source /etc/apache2/envvars
  mkdir -p ${APACHE_RUN_DIR}
fi
rm -f /var/run/apache2/*.pid
exec apache2 -DFOREGROUND
