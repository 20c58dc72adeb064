"""Clocks that jump by hours during writes, without failures except during restarts."""

from __future__ import annotations

import datetime
import email.utils
import uuid

import pytest
import sqlalchemy as sa

from jepsen.nemeses.clocks import DatabaseClock, ServiceClock
from jepsen.tests.nemesis_observer import SERVERS, observe
from tests import caller

pytestmark = [pytest.mark.xdist_group("nemeses"), pytest.mark.parametrize("cluster", SERVERS, indirect=True)]
NOW = {"mariadb": "SELECT UTC_TIMESTAMP()", "postgresql": "SELECT now() AT TIME ZONE 'UTC'"}


def hours_ahead(time):
    """Return how many hours a naive UTC time is ahead of this process's clock."""
    return round((time - datetime.datetime.now(datetime.UTC).replace(tzinfo=None)).total_seconds() / 3600)


def hours_of_service(url):
    """Return how many hours a service's clock is ahead: an empty page was last modified at the current time."""
    timestamp = caller.over_http(url)("GET", f"/resource_providers?name={uuid.uuid4()}").headers["last-modified"]
    return hours_ahead(email.utils.parsedate_to_datetime(timestamp).replace(tzinfo=None))


def test_the_clock_of_a_service_jumps(cluster):
    hours = []
    observation = observe(
        cluster,
        ServiceClock(),
        meanwhile=lambda: hours.extend(map(hours_of_service, cluster.urls)),
        answering=lambda detail: [detail["service"]],
    )
    jumped = observation.detail["service"]
    assert (hours[jumped], hours[1 - jumped]) == (observation.detail["hours"], 0)
    assert [operation for operation in observation.of(jumped).within if operation.succeeded]
    assert not [operation for operation in observation.within if not operation.succeeded]
    assert [hours_of_service(url) for url in cluster.urls] == [0, 0]


def test_the_clock_of_the_database_jumps(cluster):
    def hours():
        with sa.create_engine(cluster.database_url, poolclass=sa.NullPool).connect() as connection:
            return hours_ahead(connection.exec_driver_sql(NOW[cluster.kind]).scalar_one())

    jumps = []
    observation = observe(
        cluster, DatabaseClock(), meanwhile=lambda: jumps.append(hours()), answering=lambda _: range(2)
    )
    assert jumps == [observation.detail["hours"]]
    assert {operation.service for operation in observation.within if operation.succeeded} == {0, 1}
    assert hours() == 0
