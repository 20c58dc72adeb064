"""The dates of the last change, which responses show: only changes set them (docs: api-cache-headers)."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from placement.db import batches
from placement.db.schema.tables import allocations, consumers, inventories, resource_providers
from placement.objects.allocation import ProviderAllocations
from placement.objects.claims.holding import Holding
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from tests.db import sql_hooks
from tests.db.in_process import placement

pytestmark = pytest.mark.every_database

HOST = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c003"
CONSUMER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c004"
LONG_AGO = datetime.datetime(2020, 2, 2, 2, 2, 2)
LATER = LONG_AGO + datetime.timedelta(days=1)
DATED = (resource_providers, inventories, consumers, allocations)
RECORDS = {"VCPU": {"total": 2}, "DISK_GB": {"total": 2}}


@pytest.fixture
def service(database):
    """Return a service with a host and a consumer of two of its classes; all rows were written long ago."""
    call = placement(database)
    assert call("POST", "/resource_providers", 39, {"name": "host", "uuid": HOST}).status == 200
    assert set_inventories(call, 0, RECORDS) == 200
    assert claim(call, None) == 204

    def age(db):
        for table in DATED:
            db.execute(sa.update(table).values(created_at=LONG_AGO, updated_at=LONG_AGO))

    database.write(age)
    return call


def set_inventories(service, generation, records):
    body = {"resource_provider_generation": generation, "inventories": records}
    return service("PUT", f"/resource_providers/{HOST}/inventories", 39, body).status


def claim(service, generation):
    body = {
        "allocations": {HOST: {"resources": {"VCPU": 1, "DISK_GB": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }
    return service("PUT", f"/allocations/{CONSUMER}", 39, body).status


def tables_written(database):
    """Return the names of the tables that the last request wrote."""
    newest = {
        table.name: sa.select(sa.func.max(sa.func.coalesce(table.c.updated_at, table.c.created_at))) for table in DATED
    }
    dates = database.read(lambda db: {name: db.execute(query).scalar() for name, query in newest.items()})
    return {name for name, date in dates.items() if date > LATER}


def test_a_claim_changes_the_dates_of_provider_consumer_and_allocations(database, service):
    assert claim(service, 1) == 204
    assert tables_written(database) == {"resource_providers", "consumers", "allocations"}


def test_an_unchanged_inventory_keeps_its_date(database, service):
    assert set_inventories(service, 2, {**RECORDS, "VCPU": {"total": 3}}) == 200
    assert tables_written(database) == {"resource_providers", "inventories"}

    def dates(db):
        provider = ResourceProvider.get(db, HOST)
        return {record.resource_class: record.modified for record in Inventory.of_provider(db, provider)}

    modified = database.read(dates)
    assert modified["DISK_GB"] == LONG_AGO
    assert modified["VCPU"] > LATER


def test_only_a_new_name_changes_the_date_of_a_provider(database, service):
    for name, tables in (("host", set()), ("another", {"resource_providers"})):
        assert service("PUT", f"/resource_providers/{HOST}", 39, {"name": name}).status == 200
        assert tables_written(database) == tables


def test_the_date_of_several_allocations_is_the_newest(database, service):
    newer = sa.update(allocations).where(allocations.c.resource_class_id == 0).values(created_at=LATER)
    database.write(lambda db: db.execute(newer))
    holding = database.read(lambda db: Holding.find(db, CONSUMER))
    provider_allocations = database.read(lambda db: ProviderAllocations.of_provider(db, ResourceProvider.get(db, HOST)))
    assert (holding.modified, provider_allocations.modified) == (LATER, LATER)


def test_the_date_of_a_provider_is_that_of_its_last_change(database, service):
    database.write(lambda db: db.execute(sa.update(resource_providers).values(updated_at=LATER)))
    assert database.read(lambda db: ResourceProvider.get(db, HOST)).modified == LATER
    database.write(lambda db: db.execute(sa.update(resource_providers).values(updated_at=sa.null())))
    assert database.read(lambda db: ResourceProvider.get(db, HOST)).modified == LONG_AGO


def test_the_date_of_several_providers_is_the_newest(database, service, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_SIZE", 2)
    ids = [
        database.write(lambda db, name=name: LockedProvider.create(db, uuid=name, name=name)).record.id
        for name in "abcde"
    ]
    for newest in ids:
        dated = sa.case((resource_providers.c.id == newest, LATER), else_=LONG_AGO)
        database.write(lambda db, dated=dated: db.execute(sa.update(resource_providers).values(updated_at=dated)))
        assert database.read(lambda db: ResourceProvider.newest_change(db, ids)) == LATER
        assert database.read(lambda db: ResourceProvider.newest_change(db, None)) == LATER
    assert database.read(lambda db: ResourceProvider.newest_change(db, ids[:-1])) == LONG_AGO
    assert database.read(lambda db: ResourceProvider.newest_change(db, [])) is None


def test_the_ids_of_many_providers_are_read_in_several_statements(database, service, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_SIZE", 2)
    for name in "abcde":
        database.write(lambda db, name=name: LockedProvider.create(db, uuid=name, name=name))
    statements = []
    with sql_hooks.statements(database.reading_engine, statements.append):
        ids = database.read(lambda db: ResourceProvider.ids(db, [*"abcdef"]))
    assert ids.keys() == {*"abcde"}
    assert sum("FROM resource_providers" in statement for statement in statements) == 3


def test_the_date_of_a_list_of_providers_is_the_newest(database, service):
    other = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c008"
    assert service("POST", "/resource_providers", 39, {"name": "other", "uuid": other}).status == 200
    dated = sa.case((resource_providers.c.uuid == other, LATER), else_=LONG_AGO)
    database.write(lambda db: db.execute(sa.update(resource_providers).values(updated_at=dated)))
    dates = {
        query: service("GET", f"/resource_providers{query}").headers["last-modified"]
        for query in ("", f"?uuid={HOST}", f"?uuid={other}", "?resources=VCPU:1")
    }
    long_ago, later = "Sun, 02 Feb 2020 02:02:02 GMT", "Mon, 03 Feb 2020 02:02:02 GMT"
    assert dates == {"": later, f"?uuid={HOST}": long_ago, f"?uuid={other}": later, "?resources=VCPU:1": long_ago}
