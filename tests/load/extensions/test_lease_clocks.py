"""Workers whose clocks differ by days: only the clock of the database decides about the expiry of a lease.

SQLite has no clock, but the workers on one file share a host.
"""

from __future__ import annotations

import contextlib
import datetime
import secrets

import pytest

from placement.objects.claims import leases
from tests import children, faketime, running
from tests.children import until
from tests.load.extensions.claiming import Hosts, claiming, request
from tests.load.soundness import flaws
from tests.load.storm import Storm, new
from tests.made import opened

pytestmark = pytest.mark.long

HOUR = datetime.timedelta(hours=1)


def days_ahead(days):
    """Return the environment of a process whose clock is off by a number of days, except its monotonic clock."""
    clock = faketime.Clock(children.run_directory() / f"clock-{secrets.token_hex(4)}")
    clock.set(days * 24 * 3600)
    return clock.environment()


@pytest.fixture
def storms(database_url):
    """Clients of two services on one database, whose clocks are two days slow and two days fast."""
    with contextlib.ExitStack() as running_services:
        services = [
            running_services.enter_context(
                running.uwsgi(database_url, 1, module="jepsen.application", environment=days_ahead(days))
            )
            for days in (-2, 2)
        ]
        yield [Storm(service.url) for service in services]
    with opened(database_url) as database:
        assert flaws(database) == {}


def wait_for_a_second(url):
    """Wait until the clock of the database has advanced by more than a second."""
    with opened(url) as database:
        end = database.read(leases.now) + datetime.timedelta(seconds=1)
        until(lambda: database.read(leases.now) > end)


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True, scope="session")
def test_only_the_clock_of_the_database_decides_about_expiry(storms, database_url):
    slow, fast = storms
    dates = [storm.ask("GET", "/resource_providers").headers["last-modified"] for storm in storms]
    assert dates[0] != dates[1]
    hosts, long, short = Hosts(slow, 1, 1), new(), new()
    with opened(database_url) as database:
        before = database.read(leases.now)
        assert fast.ask(*claiming(request(hosts.query(), long), expires_in=3600)).status == 200
        after = database.read(leases.now)
    for storm in storms:
        expiry = datetime.datetime.fromisoformat(storm.get(f"/v1/claims/{long}")["expires_at"]).replace(tzinfo=None)
        assert before + HOUR <= expiry <= after + HOUR
    assert slow.ask(*claiming(request(hosts.query(), short), expires_in=1)).status == 200
    wait_for_a_second(database_url)
    # The first lease has expired for both services, and the second for neither.
    assert [storm.ask("GET", f"/v1/claims/{short}").status for storm in storms] == [404, 404]
    assert [slow.ask(*claiming(request(hosts.query(2)))).status, hosts.amount_of(long)] == [409, 1]
    assert fast.ask(*claiming(request(hosts.query()))).status == 200
    assert fast.ask("POST", f"/v1/claims/{long}/extend", {"expires_in": 1}).status == 200
    wait_for_a_second(database_url)
    assert slow.ask("POST", f"/v1/claims/{long}/extend", {"expires_in": 60}).status == 404
