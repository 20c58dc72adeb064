"""The log line of a search contains the number of results, and without results the obstacle."""

from __future__ import annotations

import logging

import pytest

from placement import deploy
from tests import caller, servers, web
from tests.db.scenarios import Names
from tests.db.writes import provider, stock

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

LOGGER = "placement.middleware.request_log"
SEARCH = "/allocation_candidates"


@pytest.fixture
def app(database):
    return start_service(database)


def start_service(database, **options):
    """Return the service with a host of three processors."""
    conf = web.configuration(placement_database__connection=str(database.engine.url), **options)
    application = deploy.loadapp(conf, database)
    call, names = caller.inside(application), Names()
    for step in (provider("host"), stock("host", VCPU=3)):
        assert call(*names.fill(step)).status < 300
    return application


def facts(app, caplog, path):
    """Return the facts of a search in the log line of its request."""
    caplog.clear()
    with caplog.at_level(logging.INFO, LOGGER):
        reply = web.ask(app, "GET", path, caller.ADMIN | {"OpenStack-API-Version": "placement 1.39"})
    assert reply.status_int == 200, reply.text
    [line] = [record for record in caplog.records if record.name == LOGGER]
    return {name: line.extra[name] for name in ("found", "obstacle") if name in line.extra}


def test_a_search_with_results_logs_their_number(app, caplog):
    assert facts(app, caplog, f"{SEARCH}?resources=VCPU:1") == {"found": 1}


def test_a_search_without_results_logs_the_obstacle(app, caplog):
    assert facts(app, caplog, f"{SEARCH}?resources=VCPU:4") == {"found": 0, "obstacle": "resources"}


def test_other_requests_log_nothing_about_searches(app, caplog):
    assert facts(app, caplog, "/resource_providers") == {}
