"""Rows of consumers that hold nothing, as another program leaves them."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from placement.db.tables import consumers
from placement.objects.consumer import Owner
from tests.db.in_process import placement

HOST = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c001"
CONSUMER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c002"


@pytest.fixture
def service(database):
    """A host with room for two."""
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


def test_consumers_are_written_in_one_order_whatever_order_they_are_named_in(database, service):
    """Else two requests about the same consumers each wait for the other."""
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

    @sa.event.listens_for(database.engine, "before_execute")
    def see(_connection, statement, _many, parameters, _options):
        if getattr(statement, "table", None) is consumers:
            written.append(by_id[parameters["id_"]])

    assert service("POST", "/allocations", 39, claims(1)).status == 204
    assert written == sorted(names)


@pytest.fixture
def ghost(database, service):
    """A consumer that holds nothing and has a row all the same, as the reference implementation leaves them."""
    owner = Owner.ensure(database, "p", "u")
    row = {"uuid": CONSUMER, "generation": 5, "project_id": owner.project_id, "user_id": owner.user_id}
    database.write(lambda db: db.execute(sa.insert(consumers), row))


@pytest.mark.parametrize(("generation", "status"), [(None, 204), (5, 204), (4, 409), (0, 409)])
def test_a_row_that_holds_nothing_is_no_consumer_but_its_generation_is_one(
    database, service, ghost, generation, status
):
    assert claim(service, generation) == status
    assert generations(database) == [6 if status == 204 else 5]


def test_what_holds_nothing_cannot_be_released(service, ghost):
    assert service("DELETE", f"/allocations/{CONSUMER}").status == 404
    assert service("GET", f"/allocations/{CONSUMER}").body == {"allocations": {}}


def test_the_row_goes_with_what_it_holds(database, service, ghost):
    assert claim(service, None) == 204
    assert claim(service, 6, amount=0) == 204
    assert generations(database) == []
