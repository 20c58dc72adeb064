"""The number of statements of a claim, whose round trips take most of its time (docs/architecture.rst).

COMMIT counts.  BEGIN, which opens the transaction, does not: PyMySQL never sends it, psycopg does.  Rows that are
inserted together count once.
"""

from __future__ import annotations

import re

import pytest

from tests import apis
from tests.db.faults import Plan, plant
from tests.db.in_process import placement
from tests.db.scenarios import Call, Names
from tests.db.writes import ADDED, HOST, claim, provider, stock
from tests.made import opened

BUDGET = 7
OWN = {"host": {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 5}}


@pytest.fixture
def service(database):
    return placement(database)


@pytest.fixture
def budget(event_inserts):
    return BUDGET + event_inserts


@pytest.fixture
def names(service):
    """Create a provider with an allocation of the same project, so that all names have ids."""
    names = Names()
    for call in (*HOST, claim(consumer="consumer_before", **OWN)):
        assert service(*names.fill(call)).status in (200, 204)
    return names


def test_a_claim_of_three_classes_for_a_new_consumer_is_within_the_budget(database, service, names, budget):
    plan = Plan()
    plant(database, plan)
    assert service(*names.fill(claim(**OWN))).status == 204
    statements = plan.statements_without_begin
    assert len(statements) == budget, statements
    assert statements[-1] == "COMMIT"


def test_a_claim_without_the_history_is_within_the_budget_of_every_database(database, names):
    plan = Plan()
    with opened(database.url, recorded=False) as without:
        service = placement(without)
        assert service(*names.fill(claim(consumer="consumer_first", **OWN))).status == 204  # inserts a writer
        plant(without, plan)
        assert service(*names.fill(claim(**OWN))).status == 204
    statements = plan.statements_without_begin
    assert len(statements) == BUDGET, statements


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_mariadb_receives_only_the_statements_of_the_budget(database, service, names):
    """No ROLLBACK, no SET, no ping, and rows in one statement."""
    with database.engine.connect() as connection:
        connection.exec_driver_sql("DO 1")
        before = questions(connection)
        connection.commit()
    assert service(*names.fill(claim(**OWN))).status == 204
    with database.engine.connect() as connection:
        round_trips = (
            questions(connection)
            - before
            - len(["the question before", "its COMMIT", "ROLLBACK as it returned to the pool"])
        )
    assert round_trips == BUDGET


def questions(connection):
    """Return the number of round trips on this connection."""
    return int(connection.exec_driver_sql("SHOW SESSION STATUS LIKE 'Questions'").one()[1])


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_postgresql_receives_only_the_statements_of_the_budget(database, service, names, tmp_path):
    """Rows inserted together are executions of one statement, sent and answered together."""
    with database.engine.connect() as connection:
        wire = connection.connection.driver_connection.pgconn
    with (tmp_path / "wire").open("w") as file:
        wire.trace(file.fileno())
        assert service(*names.fill(claim(**OWN))).status == 204
        wire.untrace()
    sent = re.findall(r"^.*\tF\t\d+\t(Query|Sync)(.*)$", (tmp_path / "wire").read_text(), re.MULTILINE)
    assert ["BEGIN" in sent[0][1], "COMMIT" in sent[-1][1]] == [True, True]
    assert len(sent) == BUDGET + len(["BEGIN"]), sent


def test_a_claim_on_three_providers_takes_one_more_statement(database, service, names, budget):
    """Their ids are looked up first, for the order of the locks."""
    for provider_name in ("second", "third"):
        for call in (provider(provider_name), stock(provider_name, VCPU=8)):
            assert service(*names.fill(call)).status == 200
    plan = Plan()
    plant(database, plan)
    everywhere = {name: {"VCPU": 1} for name in ("host", "second", "third")}
    assert service(*names.fill(claim(**everywhere))).status == 204
    assert len(plan.statements_without_begin) == budget + 1


MALFORMED = [
    ("PUT", "/resource_providers/$host/inventories", {"inventories": {}}),
    ("POST", "/resource_providers/$host/inventories", {"total": 1}),
    ("PUT", "/resource_providers/$host/inventories/VCPU", {"total": 0}),
    ("PUT", "/resource_providers/$host/aggregates", {"aggregates": "x"}),
    ("PUT", "/resource_providers/$host/traits", {"traits": []}),
    ("PUT", "/resource_providers/$host", {}),
    ("PUT", "/allocations/$consumer", {"allocations": {}}),
    ("POST", "/allocations", {"$consumer": {}}),
    ("POST", "/reshaper", {}),
    ("POST", "/resource_providers", {}),
    ("POST", "/resource_classes", {}),
    *(case for module in ADDED for case in module.MALFORMED),
]


def test_every_endpoint_that_reads_a_body_has_a_malformed_example():
    reading = {
        (method, api.prefix + re.sub(r"{\w+(:.*?)?}", "...", path))
        for api in apis.WRITABLE
        for path, methods in api.routes.items()
        for method, declared in methods.items()
        if method != "GET"
        if any(
            endpoint.body and not endpoint.until
            for endpoint in (declared if isinstance(declared, tuple) else (declared,))
        )
    }
    covered = {(method, re.sub(r"\$\w+|VCPU|CUSTOM_\w+", "...", path)) for method, path, _ in MALFORMED}
    assert reading - covered == set()


@pytest.mark.parametrize(("method", "path", "body"), MALFORMED)
def test_a_malformed_body_takes_no_lock(database, service, names, method, path, body):
    """A missing provider takes precedence, so one read looks it up; no transaction begins."""
    sent = names.fill(Call(f"{method} {path}", body, None))
    service(*sent)  # a new connection sends its own queries
    plan = Plan()
    plant(database, plan)
    assert service(*sent).status == 400
    assert len(plan.seen) <= 1, plan.seen
    assert all(statement.startswith("SELECT") and "FOR UPDATE" not in statement for statement in plan.seen)


@pytest.mark.parametrize(("method", "path", "body"), [case for case in MALFORMED if "$host" in case[1]])
def test_a_missing_provider_is_reported_before_a_malformed_body(service, names, method, path, body):
    answer = service(*names.fill(Call(f"{method} {path.replace('$host', '$missing')}", body)))
    assert answer.status == (400 if path.endswith("/traits") else 404)
