"""Traces of requests: their statements, the attempts of their transactions, and the results of their searches."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

from placement import deploy
from placement.db.schema.tables import traits
from tests import caller, web
from tests.db.interleaving import just_before
from tests.load.storm import holding
from tests.made import opened
from tests.spans import recording


@pytest.fixture
def spans(monkeypatch):
    with recording(monkeypatch) as recorded:
        yield recorded


def start_service(database):
    """Return a function that sends requests to a service on the database."""
    conf = web.configuration(placement_database__connection=str(database.engine.url))
    return caller.inside(deploy.loadapp(conf, database))


@pytest.fixture
def service(database, spans):
    return start_service(database)


@pytest.fixture
def host(service):
    """Create a host with four processors."""
    host = str(uuid.uuid4())
    assert service("POST", "/resource_providers", 39, {"uuid": host, "name": host}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert service("PUT", f"/resource_providers/{host}/inventories", 39, body).status == 200
    # creates the project, the user and the type
    assert service("PUT", f"/allocations/{uuid.uuid4()}", 39, holding([host])).status == 204
    return host


def texts(spans):
    return [span.attributes["db.query.text"] for span in spans.all() if "db.query.text" in span.attributes]


@pytest.mark.every_database
def test_the_trace_of_a_claim_contains_its_statements_and_its_commit_without_values(service, spans, host, database):
    spans.clear()
    consumer = str(uuid.uuid4())
    assert service("PUT", f"/allocations/{consumer}", 39, holding([host], owner="an-owner")).status == 204
    [claim] = [span for span in spans.all() if span.name == "PUT /allocations/{consumer_uuid}"]
    assert spans.children(claim) == ["joint"]
    assert spans.children(spans.named("joint"))[-1:] == ["database"]
    *_, attempt = [span for span in spans.all() if span.name == "database"]
    *statements, commit = spans.children(attempt)
    assert commit == "COMMIT"
    assert len(statements) >= 5
    assert any("INTO allocations" in text for text in texts(spans))
    for text in texts(spans):
        assert consumer not in text
        assert host not in text
        assert "an-owner" not in text
    systems = {span.attributes.get("db.system.name") for span in spans.all()} - {None}
    assert systems == {database.url.get_backend_name()}


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_an_attempt_that_collides_is_an_event_of_the_span(service, spans, database):
    """Just before a trait is created, another transaction creates it."""
    name = f"CUSTOM_{uuid.uuid4().hex.upper()}"

    def create():
        with database.engine.begin() as other:
            other.execute(sa.insert(traits).values(name=name))

    with just_before(database, "INSERT INTO traits", create):
        assert service("PUT", f"/traits/{name}", 39).status == 204
    [attempts] = [span for span in spans.all() if span.name == "database" and span.events]
    assert [(event.name, *event.attributes.values()) for event in attempts.events] == [
        ("attempt", 1),
        ("database error", "duplicate"),
        ("retry", "duplicate"),
        ("attempt", 2),
    ]
    assert spans.children(attempts)[-1] == "COMMIT"
    [failed] = [span for span in spans.all() if "error.type" in span.attributes]
    assert failed.attributes["db.query.text"].startswith("INSERT INTO traits")
    assert name not in failed.to_json()


def test_the_span_of_a_search_contains_the_number_of_candidates_or_the_obstacle(service, spans, host):
    def search(query):
        spans.clear()
        assert service("GET", f"/allocation_candidates?{query}", 39).status == 200
        request = spans.named("GET /allocation_candidates")
        assert spans.children(request) == ["index", "search", "present"]
        return dict(spans.named("search").attributes)

    assert search("resources=VCPU:1") == {"placement.search.candidates": 1, "placement.search.limited": False}
    assert search("resources=VCPU:1&limit=1")["placement.search.limited"]
    assert search("resources=VCPU:5") == {
        "placement.search.candidates": 0,
        "placement.search.limited": False,
        "placement.search.obstacle": "resources",
    }


def test_the_span_of_a_refresh_contains_the_missed_changes(service, spans, host):
    service("GET", "/allocation_candidates?resources=VCPU:1", 39)
    service("PUT", f"/allocations/{uuid.uuid4()}", 39, holding([host]))
    spans.clear()
    service("GET", "/allocation_candidates?resources=VCPU:1", 39)
    assert dict(spans.named("index").attributes) == {
        "placement.index.missed_transactions": 1,
        "placement.index.providers": 1,
    }


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_statements_that_another_instrumentation_traces_are_not_traced_twice(database, spans):
    instrumentor = SQLAlchemyInstrumentor()
    instrumentor.instrument(skip_dep_check=True)  # it warns that it does not support the newest SQLAlchemy
    try:
        with opened(database.url) as instrumented:
            service = start_service(instrumented)
            spans.clear()
            assert service("GET", "/resource_providers", 39).status == 200
    finally:
        instrumentor.uninstrument()
    assert any("db.statement" in span.attributes for span in spans.all())
    assert texts(spans) == []
