"""placement-ask overview --at and usage: past providers and usage, read from a running service (docs: ask)."""

from __future__ import annotations

import datetime
import json
import os
import subprocess

import pytest
import sqlalchemy as sa

from placement.extensions.v1.history.tables import event_order, events, usage_samples, usage_shares
from tests import ask_process, clients, preloaded, running, servers
from tests.ask_process import ASK
from tests.made import opened

# The output of a client does not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
HOST, CONSUMER = "c1000000-0000-4000-8000-000000000001", "e1000000-0000-4000-8000-000000000001"
#: The period of the shares.
PERIOD = ("--from", "4d", "--to", "2d")


@pytest.fixture
def service(database_url):
    with running.embedded(database_url) as embedded:
        clients.request(embedded, "POST", "/resource_providers", {"uuid": HOST, "name": "host1"})
        inventories = {"VCPU": {"total": 16}}
        path = f"/resource_providers/{HOST}/inventories"
        clients.request(embedded, "PUT", path, {"resource_provider_generation": 0, "inventories": inventories})
        yield embedded


@pytest.fixture
def client(service):
    with clients.admin(service) as connected:
        yield connected


def claim(client):
    client.claim(CONSUMER, "resources=VCPU:4", project_id="red", user_id="ann", consumer_type="JOB")


@pytest.fixture
def environment(service):
    return {**ask_process.environment(), "OS_ENDPOINT": service.url, "OS_TOKEN": "admin"}


@pytest.fixture
def ask(environment):
    def run(*words, **variables):
        return preloaded.client().run([*ASK, *words], {**environment, **variables})

    return run


def used_amounts(done):
    assert done.returncode == 0, done.stderr
    return [line.split()[2] for line in done.stdout.splitlines()[1:]]


def test_an_overview_of_a_date_shows_the_providers_of_that_time(client, ask):
    claim(client)
    event = next(client.follow(consumer=CONSUMER))
    client.release([CONSUMER])
    assert used_amounts(ask("overview")) == ["0"]
    assert used_amounts(ask("overview", "--at", event.at.isoformat().replace("+00:00", "Z"))) == ["4"]


def test_an_overview_of_an_age_shows_the_providers_of_that_time(client, ask, database_url):
    with opened(database_url) as database, database.engine.begin() as connection:
        for table in (events, event_order):
            for (at,) in connection.execute(sa.select(table.c.at).distinct()).all():
                earlier = at - datetime.timedelta(hours=2)
                connection.execute(sa.update(table).where(table.c.at == at).values(at=earlier))
    claim(client)
    assert used_amounts(ask("overview")) == ["4"]
    assert used_amounts(ask("overview", "--at", "1h")) == ["0"]
    unknown = ask("overview", "--at", "3h")
    assert (unknown.returncode, unknown.stdout) == (3, "")
    assert "410 Gone" in unknown.stderr


@pytest.fixture
def samples(client, database_url):
    """Samples of the last 30 hours, of VCPU and of a deleted class, and a claim that holds 4 VCPU at present."""
    claim(client)
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    rows = [("VCPU", 30, 16, 1), ("VCPU", 23, 16, 16), ("VCPU", 12, 16, 8), ("VCPU", 1, 16, 2), ("OLD", 2, 4, 5)]
    with opened(database_url) as database, database.engine.begin() as connection:
        for name, hours, capacity, amount in rows:
            at = now - datetime.timedelta(hours=hours)
            row = {"resource_class": name, "at": at, "capacity": capacity, "used": amount}
            connection.execute(sa.insert(usage_samples).values(row))


def rows(done):
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_the_usage_of_each_class_is_printed(samples, ask):
    period, header, old, vcpu = rows(ask("usage", PYTHONIOENCODING="utf-8"))
    assert (period[0], period[2], len(period)) == ("From", "to", 4)
    assert header == ["class", "used", "capacity", "percent", "least", "most", "trend"]
    assert old == ["OLD", "5", "4", "125", "5", "5", "█"]
    *numbers, trend = vcpu
    assert numbers == ["VCPU", "4", "16", "25", "2", "16"]
    assert (len(trend), trend[0], trend[15], trend[-2:]) == (24, "█", "▅", "▂▃")


def test_options_choose_the_usage(samples, ask):
    def usage_rows(*words):
        _, _, *lines = rows(ask("usage", *words))
        return [row[:6] for row in lines]

    assert usage_rows("--class", "VCPU", "--from", "2d") == [["VCPU", "4", "16", "25", "1", "16"]]
    assert usage_rows("--from", "2d", "--to", "13h") == [["VCPU", "16", "16", "100", "1", "16"]]
    assert usage_rows("--class", "VCPU", "--limit", "1") == [["VCPU", "4", "16", "25", "2", "4"]]
    assert len(json.loads(ask("usage", "--json", "--class", "VCPU").stdout)["classes"]["VCPU"]) == 4
    assert ask("usage", "--from", "3d", "--to", "2d").stdout == "No usage is known.\n"
    wrong = ask("usage", "--class", "NOTHING")
    assert (wrong.returncode, wrong.stdout) == (2, "")


@pytest.fixture
def shares(samples, database_url):
    """Usage of VCPU three days ago: of two projects, and in an aggregate."""
    at = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(days=3)
    shares = [("project", 0, "red", None, 6), ("project", 1, "blue", None, 2), ("aggregate", 0, HOST, 8, 6)]
    with opened(database_url) as database, database.engine.begin() as connection:
        for dimension, place, name, capacity, amount in shares:
            row = {"dimension": dimension, "place": place, "name": name, "capacity": capacity, "used": amount}
            connection.execute(sa.insert(usage_shares).values(at=at, resource_class="VCPU", **row))
        sample = {"resource_class": "VCPU", "at": at, "capacity": 16, "used": 8}
        connection.execute(sa.insert(usage_samples).values(sample))


def test_the_usage_of_projects_and_of_aggregates_is_printed(shares, ask):
    def usage_rows(by):
        _, header, *lines = rows(ask("usage", "--by", by, *PERIOD))
        assert header == ["class", by, "used", "capacity", "percent", "least", "most", "trend"]
        return [row[:7] for row in lines]

    assert usage_rows("project") == [
        ["VCPU", "red", "6", "16", "38", "6", "6"],
        ["VCPU", "blue", "2", "16", "12", "2", "2"],
    ]
    assert usage_rows("aggregate") == [["VCPU", HOST, "6", "8", "75", "6", "6"]]
    assert ask("usage", "--by", "project", "--from", "1s").stdout == "No usage by project is known.\n"
    wrong = ask("usage", "--by", "user")
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_the_client_of_openstack_shows_the_usage_of_projects_too(shares, service, openstack_command):
    ask_process.require_command("resource usage history")
    identity = ["--os-auth-type", "admin_token", "--os-endpoint", service.url, "--os-token", "admin"]
    words = ["resource", "usage", "history", "--by", "project", *PERIOD, "-f", "csv", "-c", "project", "-c", "used"]
    assert openstack_command([*identity, *words]).stdout.split() == ['"project","used"', '"red",6', '"blue",2']


@pytest.mark.parametrize(("encoding", "trend"), [("utf-8", True), ("ascii", False)])
def test_a_trend_is_printed_only_if_the_output_can_show_it(samples, environment, encoding, trend):
    words = [*ASK, "usage", "--class", "VCPU"]
    environment["PYTHONIOENCODING"] = encoding
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, check=True)
    assert (" █" in done.stdout.decode(encoding), "?" in done.stdout.decode(encoding)) == (trend, False)
