"""Rows of consumers: rows that other implementations leave behind, and the order of writes."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import allocations, consumers
from placement.objects.consumer import Consumer
from tests.caller import NEW_CONSUMER
from tests.db import sql_hooks
from tests.db.in_process import placement
from tests.reused_database import NOWHERE

HOST = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c001"
CONSUMER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c002"


@pytest.fixture
def service(database):
    """Return the service, with a host of two VCPU."""
    call = placement(database)
    assert call("POST", "/resource_providers", 39, {"name": "host", "uuid": HOST}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 2}}}
    assert call("PUT", f"/resource_providers/{HOST}/inventories", 39, body).status == 200
    return call


def claim(service, generation, amount=1):
    body = {
        "allocations": {HOST: {"resources": {"VCPU": amount}}} if amount else {},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }
    return service("PUT", f"/allocations/{CONSUMER}", 39, body).status


def generations(database):
    return database.read(lambda db: db.execute(sa.select(consumers.c.generation)).scalars().all())


def test_consumers_are_written_in_one_order(database, service):
    """Otherwise two requests about the same consumers deadlock."""
    names = [f"6c1b0f5e-0b8e-4f6e-8a57-{number:012}" for number in (3, 1, 2)]

    def claims(generation):
        owner = {"project_id": "p", "user_id": "u", "consumer_generation": generation, "consumer_type": "INSTANCE"}
        amounts = {"VCPU": 1}
        return {name: {"allocations": {HOST: {"resources": amounts}}, **owner} for name in names}

    body = {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 9}}}
    assert service("PUT", f"/resource_providers/{HOST}/inventories", 39, body).status == 200
    assert service("POST", "/allocations", 39, claims(None)).status == 204
    by_id = database.read(lambda db: dict(db.execute(sa.select(consumers.c.id, consumers.c.uuid)).all()))
    written = []

    @sa.event.listens_for(database.engine, "before_cursor_execute")
    def see(_connection, _cursor, statement, parameters, _context, _many):
        if statement.startswith("UPDATE consumers"):
            written.append(by_id[parameters["id_"] if isinstance(parameters, dict) else parameters[-2]])

    assert service("POST", "/allocations", 39, claims(1)).status == 204
    assert written == sorted(names)


@pytest.fixture
def row_without_allocations(database, service):
    """Create a consumer row without allocations, as the reference implementation leaves them."""
    row = {"uuid": CONSUMER, "generation": 5, "project_id": 0, "user_id": 0}
    database.write(lambda db: db.execute(sa.insert(consumers), row))


@pytest.mark.parametrize(("generation", "status"), [(None, 204), (5, 204), (4, 409), (0, 409)])
def test_a_row_without_allocations_counts_as_absent_but_its_generation_is_accepted(
    database, service, row_without_allocations, generation, status
):
    assert claim(service, generation) == status
    assert generations(database) == [6 if status == 204 else 5]


def test_a_row_without_allocations_cannot_be_released(service, row_without_allocations):
    assert service("DELETE", f"/allocations/{CONSUMER}").status == 404
    assert service("GET", f"/allocations/{CONSUMER}").body == {"allocations": {}}


def test_the_row_is_deleted_with_its_allocations(database, service, row_without_allocations):
    assert claim(service, None) == 204
    assert claim(service, 6, amount=0) == 204
    assert generations(database) == []


@pytest.fixture
def consumer_on_deleted_provider(database, service):
    """Create a consumer with an allocation on a deleted provider, too, as the reference implementation leaves it."""
    assert claim(service, None) == 204
    row = {"consumer_id": CONSUMER, "resource_provider_id": NOWHERE, "resource_class_id": 0, "used": 1}
    database.write(lambda db: db.execute(sa.insert(allocations), row))


@pytest.mark.parametrize("way", ["emptied", "released", "moved", "reshaped"])
def test_allocations_on_a_deleted_provider_can_be_released(
    database, service, consumer_on_deleted_provider, way, caplog
):
    page = "/allocation_candidates?resources=VCPU:2"
    assert service("GET", page).body["allocation_requests"] == []
    empty = {
        "allocations": {},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": 1,
        "consumer_type": "INSTANCE",
    }
    if way == "emptied":
        assert claim(service, 1, amount=0) == 204
    elif way == "released":
        assert service("DELETE", f"/allocations/{CONSUMER}").status == 204
    elif way == "reshaped":
        host = {"resource_provider_generation": 2, "inventories": {"VCPU": {"total": 2}}}
        body = {"inventories": {HOST: host}, "allocations": {CONSUMER: empty}}
        assert service("POST", "/reshaper", 39, body).status == 204
    else:
        assert claim(service, 1) == 204
    provider_ids = database.read(lambda db: db.execute(sa.select(allocations.c.resource_provider_id)).scalars().all())
    assert len(provider_ids) == (way == "moved")
    assert NOWHERE not in provider_ids
    assert len(service("GET", page).body["allocation_requests"]) == (way != "moved")
    assert "change feed" not in caplog.text


def test_new_and_existing_rows_are_written_in_one_order(database, service):
    """Otherwise two writers deadlock if each creates a consumer that the other one updates."""
    bodies = {}
    for number in (1, 2, 3, 4):
        consumer = f"6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c01{number}"
        bodies[consumer] = {
            "allocations": {HOST: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
    _, second, _, fourth = bodies
    assert service("POST", "/allocations", 39, {second: bodies[second], fourth: bodies[fourth]}).status == 204
    for old in (second, fourth):
        bodies[old] |= {"consumer_generation": 1, "allocations": {}}
    written = []
    with sql_hooks.statements(database.engine, written.append):
        assert service("POST", "/allocations", 39, dict(reversed(bodies.items()))).status == 204
    kinds = [
        statement.split()[0] for statement in written if re.match(r"(INSERT INTO|DELETE FROM) consumers", statement)
    ]
    assert kinds == ["INSERT", "DELETE", "INSERT", "DELETE"]


def test_new_consumers_are_created_and_locked_in_one_order(database, service):
    """Otherwise two requests deadlock if each has created a consumer that the other one writes."""
    names = [f"6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c02{number}" for number in (3, 1, 2)]
    claim_of_host = {"allocations": {HOST: {"resources": {"VCPU": 1}}}}
    body = {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 9}}}
    assert service("PUT", f"/resource_providers/{HOST}/inventories", 39, body).status == 200
    written = []

    @sa.event.listens_for(database.engine, "before_cursor_execute")
    def see(_connection, _cursor, statement, parameters, _context, many):
        if statement.startswith("INSERT INTO consumers"):
            rows = parameters if many else [parameters]
            values = [value for row in rows for value in (row.values() if isinstance(row, dict) else row)]
            # On PostgreSQL all rows are one value, a text of JSON.
            written.append(re.findall("|".join(names), " ".join(map(str, values))))

    assert service("POST", "/allocations", 39, dict.fromkeys(names, NEW_CONSUMER | claim_of_host)).status == 204
    database.write(lambda db: Consumer.create_and_lock(db, names))
    # The first attempt of the claim is rolled back: it finds no project of that name.
    assert written == [sorted(names)] * 3
