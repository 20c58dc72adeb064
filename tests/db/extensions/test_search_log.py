"""Log lines of the extensions' searches and claims (tests/db/test_search_log.py)."""

from __future__ import annotations

import logging
import uuid

import pytest

from placement import signals
from tests import caller, servers
from tests.db.test_search_log import LOGGER, facts, start_service

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

SEARCHES = ("/v1/capacity", "/v1/explain", "/console/query")


@pytest.fixture
def app(database):
    return start_service(database, console__enabled=True)


@pytest.mark.parametrize("path", SEARCHES)
def test_a_successful_search_logs_the_number_of_results(app, caplog, path):
    assert facts(app, caplog, f"{path}?resources=VCPU:1") == {"found": 3 if path == "/v1/capacity" else 1}


@pytest.mark.parametrize("path", SEARCHES)
def test_a_search_without_results_logs_the_obstacle(app, caplog, path):
    assert facts(app, caplog, f"{path}?resources=VCPU:4") == {"found": 0, "obstacle": "resources"}


def test_other_requests_log_nothing_about_searches(app, caplog):
    assert facts(app, caplog, "/v1/overview") == {}


def test_a_request_for_claims_logs_the_numbers_of_placed_and_refused_claims(app, caplog):
    owner = {"consumer_type": "INSTANCE", "project_id": "p", "user_id": "u", "query": "resources=VCPU:2"}
    body = {"requests": [{"consumer": str(uuid.uuid4()), **owner} for _ in range(3)]}
    outcomes = []
    signals.claims_answered.connect(count := lambda outcome, number: outcomes.append((outcome, number)))
    try:
        with caplog.at_level(logging.INFO, LOGGER):
            assert caller.inside(app)("POST", "/v1/claims", body=body).status == 200
            assert caller.inside(app)("POST", "/v1/claims?dry_run=true", body=body).status == 200
    finally:
        signals.claims_answered.disconnect(count)
    line, dry_run_line = [record for record in caplog.records if record.name == LOGGER]
    assert {name: line.extra[name] for name in ("claimed", "refused")} == {"claimed": 1, "refused": 2}
    assert line.getMessage().endswith("claimed: 1 refused: 2")
    assert dry_run_line.extra["route"] == "/v1/claims?dry_run=true"
    assert outcomes == [("claimed", 1), ("NoRoom", 2)]
