"""Reading of consumers with inconsistent rows, as other implementations leave them."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import allocations, consumers, projects, users
from placement.objects.claims import consumer_pages, leases
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.consumer_pages import ConsumerFilter
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests.db import lease

pytestmark = pytest.mark.every_database

CONSUMER = "c0ffee00-0000-4000-8000-00000000000a"
DISK_GB = 2
#: The difference between the id of a provider and an id that does not exist.
LOST = 1000


@pytest.fixture
def ids(database):
    """Return the ids of two providers, on which the consumer has allocations, with a lease."""

    def work(db):
        provider_ids = {}
        for name in ("host", "pool"):
            provider = LockedProvider.create(db, uuid=name, name=name)
            provider.replace_inventories([Inventory("VCPU", 100), Inventory("DISK_GB", 100)])
            provider_ids[name] = provider.record.id
        return provider_ids

    ids = database.write(work)
    claim = Claim(CONSUMER, {"host": {"VCPU": 1}, "pool": {"DISK_GB": 2}}, Owner("red", "ann", "INSTANCE"))
    database.write(lambda db: ClaimSet(db, [claim]).place())
    database.write(lambda db: leases.extend(db, CONSUMER, 3600))
    return ids


def spoil(database, statement):
    """Change rows without the service."""
    with database.engine.begin() as connection:
        assert connection.execute(statement).rowcount != 0


def lose(database, provider_id):
    """Let the allocations on a provider refer to a provider that does not exist."""
    of_provider = allocations.c.resource_provider_id == provider_id
    spoil(database, sa.update(allocations).where(of_provider).values(resource_provider_id=provider_id + LOST))


def read(database):
    """Return the consumer as each reader reads it: the Placement API, claims and their history, pages, locks."""

    def work(db):
        holders = consumer_pages.page(db, ConsumerFilter(), 10).holders
        return (
            Holding.find(db, CONSUMER),
            Holding.read_all(db, [CONSUMER]).get(CONSUMER),
            next((holding for holding in holders if holding.uuid == CONSUMER), None),
            next(iter(Holding.lock(db, [CONSUMER])), None),
        )

    return database.write(work)


def test_all_readers_agree_on_a_consistent_consumer(database, ids):
    by_api, *others = read(database)
    for other in others:
        assert other.is_unchanged_since(by_api)
        assert (other.held, other.amounts) == (by_api.held, {("host", "VCPU"): 1, ("pool", "DISK_GB"): 2})
        assert (other.held_on, other.exists) == ({*ids.values()}, True)


def test_allocations_without_a_consumer_row_are_read_only_by_claims(database, ids):
    spoil(database, sa.delete(consumers))
    by_api, by_claims, by_pages, by_locks = read(database)
    assert (by_api, by_pages, by_locks) == (None, None, None)
    assert (by_claims.id, by_claims.generation, by_claims.project, by_claims.exists) == (None, None, None, False)
    assert by_claims.amounts == {("host", "VCPU"): 1, ("pool", "DISK_GB"): 2}


@pytest.mark.parametrize("table", [projects, users])
def test_only_the_placement_api_hides_a_consumer_without_its_owner(database, ids, table):
    spoil(database, sa.delete(table))
    by_api, *others = read(database)
    assert by_api is None
    for other in others:
        assert [other.project, other.user] == (["red", None] if table is users else [None, "ann"])


def test_allocations_on_a_deleted_provider_count_and_are_not_shown(database, ids):
    lose(database, ids["pool"])
    for holding in read(database):
        assert (holding.resources, holding.held_on) == ({"host": {"VCPU": 1}}, {ids["host"], ids["pool"] + LOST})
    lose(database, ids["host"])
    by_api, *others = read(database)
    assert by_api is None
    for other in others:
        assert (other.resources, other.amounts, other.exists) == ({}, {}, True)


def test_the_last_of_several_rows_of_a_class_is_shown_and_the_history_has_the_sum(database, ids):
    second_row = {"resource_provider_id": ids["pool"], "resource_class_id": DISK_GB, "consumer_id": CONSUMER, "used": 5}
    spoil(database, sa.insert(allocations).values(second_row))
    for holding in read(database):
        assert (holding.resources["pool"], holding.amounts["pool", "DISK_GB"]) == ({"DISK_GB": 5}, 7)


def test_a_consumer_whose_lease_has_expired_is_read_and_counts_as_absent(database, ids):
    lease.expire(database, CONSUMER)
    for holding in read(database):
        assert (holding.is_expired, holding.exists, holding.held_on) == (True, False, {*ids.values()})


def test_a_row_without_allocations_is_locked_and_not_shown(database, ids):
    with database.engine.begin() as connection:
        connection.execute(sa.delete(allocations))
    *others, locked = read(database)
    assert others == [None, None, None]
    assert (locked.generation, locked.held_on, locked.exists) == (1, set(), False)


def test_the_date_is_of_the_newest_shown_allocation(database, ids):
    first, last = datetime.datetime(2026, 1, 1), datetime.datetime(2026, 2, 1)
    for name, date in (("host", first), ("pool", last)):
        of_provider = allocations.c.resource_provider_id == ids[name]
        spoil(database, sa.update(allocations).where(of_provider).values(created_at=date))
    assert read(database)[0].modified == last
    lose(database, ids["pool"])
    assert read(database)[0].modified == first
