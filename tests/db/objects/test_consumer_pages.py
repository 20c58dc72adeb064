"""Pages of consumers: each examines a limited number, and together they list every consumer once."""

from __future__ import annotations

import datetime
import itertools
import uuid

import pytest
import sqlalchemy as sa

from placement.db.schema import tables
from placement.db.schema.tables import allocations, consumers, utcnow
from placement.objects.claims import consumer_pages, leases
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.consumer_pages import ConsumerFilter
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests.db import lease

VCPU, DISK_GB = 0, 2


@pytest.fixture
def ids(database):
    """Create two providers; return their ids."""

    def work(db):
        provider_ids = []
        for name in ("host", "pool"):
            provider = LockedProvider.create(db, uuid=name, name=name)
            provider.replace_inventories([Inventory("VCPU", 100), Inventory("DISK_GB", 100)])
            provider_ids.append(provider.record.id)
        return provider_ids

    return dict(zip(("host", "pool"), database.write(work), strict=True))


def claims(database, number, *, project="red", consumer_type="INSTANCE", **allocations):
    """Let ``number`` consumers claim; return their uuids."""
    made = [str(uuid.uuid4()) for _ in range(number)]
    for consumer in made:
        claim = Claim(consumer, allocations, Owner(project, "ann", consumer_type))
        database.write(lambda db, claim=claim: ClaimSet(db, [claim]).place())
    return made


def pages(database, condition, limit=100):
    """Return the uuids of each page."""
    uuids, start = [], 0
    while start is not None:
        page = database.read(lambda db, start=start: consumer_pages.page(db, condition, limit, start))
        uuids.append([holder.uuid for holder in page.holders])
        assert page.next is None or page.next > start
        start = page.next
    return uuids


@pytest.fixture
def small(monkeypatch):
    """Have a page examine two consumers, or read up to two rows of an index."""
    monkeypatch.setattr(consumer_pages, "WINDOW", 2)
    monkeypatch.setattr(consumer_pages, "MAX_INDEX_ROWS", 2)


def test_each_page_of_a_list_by_age_examines_a_window_of_consumers(database, ids, small):
    made = claims(database, 5, host={"VCPU": 1})
    hour = datetime.timedelta(hours=1)
    assert pages(database, ConsumerFilter(created_after=utcnow() - hour)) == [made[:2], made[2:4], made[4:]]
    assert pages(database, ConsumerFilter(created_after=utcnow() + hour)) == [[], [], []]
    assert pages(database, ConsumerFilter(created_before=utcnow() + hour), limit=1) == [[consumer] for consumer in made]
    date = datetime.datetime(2026, 11, 1)
    database.write(lambda db: db.execute(sa.update(consumers).values(created_at=date)))
    assert pages(database, ConsumerFilter(created_after=date)) == [made[:2], made[2:4], made[4:]]
    assert pages(database, ConsumerFilter(created_before=date)) == [[], [], []]


def test_consumers_are_found_by_the_expiry_of_their_leases(database, ids, small):
    _without, late, expired, *soon = claims(database, 6, host={"VCPU": 1})
    for consumer, seconds in ((late, 7200), (expired, 60), *((consumer, 600) for consumer in soon)):
        database.write(lambda db, consumer=consumer, seconds=seconds: leases.extend(db, consumer, seconds))
    lease.expire(database, expired)
    hour = database.read(leases.now) + datetime.timedelta(hours=1)
    assert [*itertools.chain(*pages(database, ConsumerFilter(expires_by=hour)))] == soon
    assert pages(database, ConsumerFilter(expires_by=hour - datetime.timedelta(days=1))) == [[]]


def test_few_consumers_of_an_owner_or_type_fill_one_page_and_many_are_found_by_windows(database, ids, small):
    large_holders = claims(database, 4, host={"VCPU": 1})
    [other] = claims(database, 1, project="blue", consumer_type="MIGRATION", host={"VCPU": 1})
    assert pages(database, ConsumerFilter(project="blue")) == [[other]]
    assert pages(database, ConsumerFilter(consumer_type="MIGRATION")) == [[other]]
    assert pages(database, ConsumerFilter(project="red")) == [large_holders[:2], large_holders[2:], []]
    assert pages(database, ConsumerFilter(user="ann")) == [large_holders[:2], large_holders[2:], [other]]
    assert pages(database, ConsumerFilter(project="blue", user="ann", consumer_type="MIGRATION")) == [[other]]


@pytest.mark.parametrize("unknown", [{"project": "unknown"}, {"user": "unknown"}, {"consumer_type": "NONE"}])
def test_an_unknown_name_owns_nothing(database, ids, unknown):
    claims(database, 1, consumer_type=None, host={"VCPU": 1})
    assert pages(database, ConsumerFilter(**unknown)) == [[]]


def test_consumers_without_a_type_are_found(database, ids, small):
    claims(database, 4, host={"VCPU": 1})
    untyped = claims(database, 2, consumer_type=None, host={"VCPU": 1})
    assert pages(database, ConsumerFilter(consumer_type="unknown")) == [untyped]


def test_few_consumers_of_a_provider_fill_one_page_and_many_are_found_by_windows(database, ids, small):
    first = claims(database, 2, pool={"VCPU": 1})
    claims(database, 3, host={"VCPU": 1})
    of_pool = ConsumerFilter(providers=[ids["pool"]])
    assert pages(database, of_pool) == [first]
    last = claims(database, 1, pool={"VCPU": 1})
    assert pages(database, of_pool) == [first, [], last]
    assert pages(database, ConsumerFilter(providers=[ids["pool"]], resource_class=DISK_GB)) == [[]]


def test_allocations_of_the_class_on_other_providers_do_not_count(database, ids, small):
    """This holds for both ways to find consumers: by their allocations, and by windows."""
    claims(database, 3, pool={"VCPU": 1})
    [consumer_of_both] = claims(database, 1, pool={"VCPU": 1}, host={"DISK_GB": 1})
    on_host = ConsumerFilter(providers=[ids["host"]], resource_class=DISK_GB)
    assert pages(database, on_host) == [[consumer_of_both]]
    assert pages(database, ConsumerFilter(providers=[ids["pool"]], resource_class=DISK_GB)) == [[]]
    of_class = [page for page in pages(database, ConsumerFilter(resource_class=DISK_GB)) if page]
    assert of_class == [[consumer_of_both]]
    claims(database, 3, host={"DISK_GB": 1})
    assert sum(map(len, pages(database, on_host))) == 4


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_consumers_without_allocations_are_skipped(database, ids, limit):
    made = claims(database, 4, host={"VCPU": 1})
    with database.engine.begin() as connection:
        connection.execute(sa.delete(allocations).where(allocations.c.consumer_id.in_(made[1:3])))
    holders = [made[0], made[3]]
    for condition in (ConsumerFilter(), ConsumerFilter(project="red"), ConsumerFilter(providers=[ids["host"]])):
        assert [*itertools.chain(*pages(database, condition, limit))] == holders
    with database.engine.begin() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(consumers)).scalar() == 4


def test_a_listed_consumer_has_the_expiry_of_its_lease(database, ids):
    made = claims(database, 2, host={"VCPU": 1})
    database.write(lambda db: leases.extend(db, made[1], 3600))
    permanent, leased = database.read(lambda db: consumer_pages.page(db, ConsumerFilter(), 10)).holders
    assert permanent.expires_at is None
    assert leased.expires_at == database.read(lambda db: db.execute(sa.select(tables.claims.c.expires_at)).scalar_one())
    assert (leased.uuid, [*leased.held]) == (made[1], ["host"])
