"""Calls for action on the overview: leases that expire soon, and errors found by the doctor."""

from __future__ import annotations

import re
import time

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import resource_providers
from placement.objects.claims.lease_sweep import LeaseSweeper
from tests import servers, web
from tests.clock import Clock
from tests.db import lease
from tests.extensions.console import fleet
from tests.extensions.console.conftest import console
from tests.extensions.console.fleet import CONSUMER, provider, send
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")


def page(app, path):
    reply = web.ask(app, "GET", f"/console{path}")
    assert reply.status_int == 200, reply.text
    return reply.text


def test_leases_that_expire_within_the_hour_are_counted(database_url, monkeypatch):
    """An expired lease is not counted, even before it is released."""
    app = console(database_url)
    provider(app, "host", DISK_GB=100)

    def leases_shown():
        return re.findall(r"<b>(\d+)</b> (leases? expires? within the hour)", page(app, "/"))

    fleet.lease(app, 7200)
    assert leases_shown() == []
    fleet.lease(app, 1800)
    expired = fleet.lease(app, 600)
    assert leases_shown() == [("2", "leases expire within the hour")]
    monkeypatch.setattr(LeaseSweeper, "sweep", lambda _: False)
    with opened(database_url) as database:
        lease.expire(database, expired)
    assert leases_shown() == [("1", "lease expires within the hour")]


def test_the_overview_links_to_the_leases_that_expire_within_the_hour(database_url):
    app = console(database_url)
    provider(app, "host", DISK_GB=100)
    later, soon = fleet.lease(app, 7200), fleet.lease(app, 1800)
    [path] = re.findall(r'href="/console(/consumers[^"]*)"><b>1</b> lease expires', page(app, "/"))
    consumers = page(app, path)
    assert soon in consumers
    assert later not in consumers
    assert re.search(r'<input id="ends_within" name="ends_within" value="1h"', consumers)


def test_errors_found_by_the_doctor_are_counted_once_a_minute(database_url, monkeypatch):
    clock = Clock(time.monotonic())
    monkeypatch.setattr("placement.extensions.v1.worker_examination.time", clock)
    app = console(database_url)
    uuids = {name: provider(app, name, VCPU=1) for name in ("host", "other")}
    uuids["child"] = provider(app, "child", uuids["host"], VCPU=1)
    # Over-commitment is a warning, not an error.
    allocations = {uuids["host"]: {"resources": {"VCPU": 1}}}
    owner = {"project_id": "blue", "user_id": "ann", "consumer_type": "INSTANCE", "consumer_generation": None}
    send(app, "PUT", f"/allocations/{CONSUMER}", {"allocations": allocations, **owner})
    path = f"/resource_providers/{uuids['host']}"
    reduced = {"resource_provider_generation": send(app, "GET", path)["generation"], "total": 1, "reserved": 1}
    send(app, "PUT", f"{path}/inventories/VCPU", reduced)

    def set_root(name):
        id_of = sa.select(resource_providers.c.id).where(resource_providers.c.uuid == uuids[name])
        of_child = resource_providers.c.uuid == uuids["child"]
        with opened(database_url) as database:
            root = database.read(lambda db: db.execute(id_of).scalar_one())
            changed = sa.update(resource_providers).where(of_child).values(root_provider_id=root)
            assert database.write(lambda db: db.execute(changed).rowcount) == 1

    def errors(service=app):
        return re.findall(r"<b>(\d+)</b> (errors? found by the doctor)", page(service, "/findings"))

    assert errors() == []
    set_root("other")
    clock.sleep(59)
    assert errors() == []
    clock.sleep(2)
    assert errors() == [("1", "error found by the doctor")]
    set_root("host")
    assert errors() == [("1", "error found by the doctor")]
    # Another service makes its own examination.
    assert errors(console(database_url)) == []
    clock.sleep(61)
    assert errors() == []
