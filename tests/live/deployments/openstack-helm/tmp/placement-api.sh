#!/bin/bash
set -ex
exec uwsgi --ini /etc/placement/placement-api-uwsgi.ini
