"""Leases, without requests: expiry by the database's clock, extensions, and releases."""

from __future__ import annotations

import datetime
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from placement import errors, signals
from placement.db.schema.tables import claims, consumers
from placement.objects.claims import lease_sweep, leases, release
from placement.objects.claims.claim import ANY_GENERATION, Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.objects.usage import Usage
from tests import signal_facts
from tests.clock import PATIENCE
from tests.db import lease

pytestmark = pytest.mark.every_database

HOST, TOTAL = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c010", 8
OWNER = Owner("project", "user")


@pytest.fixture
def host(database):
    """Create a provider with eight VCPU."""
    database.write(
        lambda db: LockedProvider.create(db, uuid=HOST, name="host").replace_inventories([Inventory("VCPU", TOTAL)])
    )


@pytest.fixture
def published_numbers():
    """Return the published numbers of released leases."""
    with signal_facts.collect(signals.leases_expired) as numbers:
        yield numbers


def claim(database, amount=1):
    """Return a consumer that holds this amount."""
    consumer = str(uuid.uuid4())
    database.write(lambda db: ClaimSet(db, [Claim(consumer, {HOST: {"VCPU": amount}}, OWNER)]).place())
    return consumer


def claim_with_lease(database, amount=1, seconds=3600):
    """Return a consumer that holds this amount with a lease of this duration."""
    consumer = claim(database, amount)
    database.write(lambda db: leases.extend(db, consumer, seconds))
    return consumer


def usage(database):
    return database.read(lambda db: Usage.of_provider(db, ResourceProvider.get(db, HOST)))["VCPU"]


def end_of(database, consumer):
    ends = sa.select(claims.c.expires_at).join(consumers).where(consumers.c.uuid == consumer)
    return database.read(lambda db: db.execute(ends).scalar_one_or_none())


def test_the_clock_is_in_utc_with_fractions(database):
    time_before = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    times = [database.read(leases.now) for _ in range(20)]
    time_after = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    # The server may have read the clock shortly before, and SQLite truncates it to milliseconds.
    slack = datetime.timedelta(seconds=5)
    assert time_before - slack <= times[0] <= times[-1] <= time_after + slack
    assert times == sorted(times)
    assert any(time.microsecond for time in times)


@pytest.mark.usefixtures("host")
def test_a_lease_expires_after_its_duration(database):
    consumer = claim_with_lease(database, seconds=3600)
    remaining_time = end_of(database, consumer) - database.read(leases.now)
    assert datetime.timedelta(seconds=3000) < remaining_time <= datetime.timedelta(seconds=3600)
    database.write(lambda db: leases.extend(db, consumer, 7200))
    assert end_of(database, consumer) - database.read(leases.now) > datetime.timedelta(seconds=6600)
    database.write(lambda db: leases.extend(db, consumer, None))
    assert end_of(database, consumer) is None


@pytest.mark.usefixtures("host")
def test_only_expired_leases_are_released(database):
    staying, endless, over = claim_with_lease(database, 1), claim_with_lease(database, 2), claim_with_lease(database, 4)
    assert lease.count(database) == 3
    for consumer in (endless, claim(database, 1)):
        database.write(lambda db, consumer=consumer: leases.extend(db, consumer, None))
    assert not database.read(leases.any_expired)
    assert database.write(leases.release_expired) == 0
    lease.expire(database, over)
    assert database.read(leases.any_expired)
    assert (database.write(leases.release_expired), database.write(leases.release_expired)) == (1, 0)
    assert not database.read(leases.any_expired)
    assert usage(database) == 4
    assert database.read(lambda db: Holding.find(db, over)) is None
    assert database.read(lambda db: Holding.find(db, staying)) is not None
    assert lease.count(database) == 2, "a record is deleted with its consumer; a claim without a lease has none"


@pytest.mark.usefixtures("host")
def test_an_expired_lease_is_not_extended(database):
    consumer = claim_with_lease(database)
    lease.expire(database, consumer)
    with pytest.raises(errors.NoAllocations):
        database.write(lambda db: leases.extend(db, consumer, 600))
    with pytest.raises(errors.NoAllocations):
        database.write(lambda db: leases.extend(db, str(uuid.uuid4()), 600))


@pytest.mark.usefixtures("host")
def test_leases_are_released_in_batches_the_oldest_first(database):
    consumer_uuids = [claim_with_lease(database) for _ in range(5)]
    for seconds, consumer in enumerate(consumer_uuids):
        lease.expire(database, consumer, seconds)
    assert database.write(lambda db: leases.release_expired(db, 2)) == 2
    remaining = database.read(lambda db: db.execute(sa.select(consumers.c.uuid)).scalars().all())
    assert {*remaining} == {*consumer_uuids[:3]}
    assert [database.write(lambda db: leases.release_expired(db, 2)) for _ in range(3)] == [2, 1, 0]


@pytest.mark.usefixtures("host")
def test_a_write_is_retried_once_expired_leases_on_its_providers_are_released(database):
    consumer = claim_with_lease(database)
    lease.expire(database, consumer)
    host_id = database.read(lambda db: ResourceProvider.get(db, HOST)).id
    calls = []

    def work(db, provider_id):
        calls.append(provider_id)
        leases.require_none_expired_on(db, [provider_id])

    database.write(lambda db: work(db, host_id + 1))
    assert (calls, usage(database)) == ([host_id + 1], 1)
    database.write(lambda db: work(db, host_id))
    assert (calls, usage(database)) == ([host_id + 1, host_id, host_id], 0)


@pytest.mark.usefixtures("host")
def test_a_consumer_keeps_its_lease_until_it_ends_and_has_none_if_it_is_created_again(database):
    consumer = claim_with_lease(database)
    ends = end_of(database, consumer)

    def place(amount):
        resources = {HOST: {"VCPU": amount}} if amount else {}
        database.write(lambda db: ClaimSet(db, [Claim(consumer, resources, OWNER)]).place())

    place(3)
    assert end_of(database, consumer) == ends
    place(0)
    assert lease.count(database) == 0
    place(1)
    assert end_of(database, consumer) is None


@pytest.mark.usefixtures("host")
def test_a_claim_gets_the_capacity_of_an_expired_lease(database, published_numbers):
    lease.expire(database, claim_with_lease(database, TOTAL))
    staying = claim(database, 2)
    assert usage(database) == 2
    assert published_numbers == [1]
    with pytest.raises(errors.CapacityExceeded):
        claim(database, TOTAL - 1)
    assert database.read(lambda db: Holding.find(db, staying)) is not None


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda provider: provider.replace_inventories([]), errors.InventoryInUse),
        (LockedProvider.delete, errors.ProviderHasAllocations),
    ],
)
def test_an_expired_lease_protects_neither_inventory_nor_provider(database, change, refusal):
    staying = claim_with_lease(database)
    lease.expire(database, claim_with_lease(database))
    with pytest.raises(refusal):
        database.write(lambda db: change(LockedProvider.lock(db, HOST)))
    lease.expire(database, staying)
    database.write(lambda db: change(LockedProvider.lock(db, HOST)))
    assert lease.count(database) == 0


@pytest.mark.usefixtures("host")
def test_a_dry_run_sees_the_capacity_of_an_expired_lease_and_releases_nothing(database, published_numbers):
    over = claim_with_lease(database, TOTAL)
    lease.expire(database, over)
    seen = []
    large_claim = Claim(str(uuid.uuid4()), {HOST: {"VCPU": 2}}, OWNER)
    database.dry_run(
        [lambda db: ClaimSet(db, [large_claim]).place()],
        lambda db: seen.append(Usage.of_provider(db, ResourceProvider.get(db, HOST))["VCPU"]),
    )
    assert seen == [2]
    assert usage(database) == TOTAL
    assert published_numbers == []


@pytest.mark.usefixtures("host")
def test_a_sweep_releases_and_counts_all_expired_leases(database, published_numbers, monkeypatch):
    monkeypatch.setattr(release, "BATCH", 2)
    for _ in range(5):
        lease.expire(database, claim_with_lease(database))
    counted = []
    assert not lease_sweep.sweep(database, 3, released=counted.append)
    assert (counted, usage(database)) == ([2, 1], 2)
    assert lease_sweep.sweep(database, released=counted.append)
    assert (counted, published_numbers, usage(database)) == ([2, 1, 2], [2, 1, 2], 0)
    assert lease_sweep.sweep(database, 0)


@pytest.mark.usefixtures("host")
def test_a_sweep_skips_a_consumer_that_another_transaction_has_locked(database, monkeypatch):
    """SQLite allows one writer at a time, so the sweep waits there."""
    busy, other = claim_with_lease(database, 1), claim_with_lease(database, 2)
    for consumer in (busy, other):
        lease.expire(database, consumer)
    monkeypatch.setattr(lease_sweep, "MAX_IDLE", 2)
    with ThreadPoolExecutor(1) as threads:

        def hold(db):
            Holding.lock(db, [busy])
            sweeping = threads.submit(lease_sweep.sweep, database)
            if db.skips_locked_rows:
                assert not sweeping.result(PATIENCE)
            return sweeping

        assert database.write(hold).result(PATIENCE) == (database.url.get_backend_name() == "sqlite")
    assert usage(database) == (0 if database.url.get_backend_name() == "sqlite" else 1)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("generation", [None, ANY_GENERATION])
def test_an_expired_consumer_is_claimed_for_again(database, published_numbers, generation):
    """Otherwise the old lease would release the new claim, too."""
    consumer = claim_with_lease(database, 5)
    lease.expire(database, consumer)
    repeated_claim = Claim(consumer, {HOST: {"VCPU": TOTAL}}, OWNER, generation)
    database.write(lambda db: ClaimSet(db, [repeated_claim]).place())
    assert (usage(database), published_numbers, lease.count(database)) == (TOTAL, [1], 0)
    assert database.write(leases.release_expired) == 0


@pytest.mark.usefixtures("host")
def test_the_generation_of_an_expired_consumer_is_refused(database, published_numbers):
    consumer = claim_with_lease(database)
    lease.expire(database, consumer)
    stale = Claim(consumer, {HOST: {"VCPU": 2}}, OWNER, 1)
    with pytest.raises(errors.ConsumerGenerationConflict):
        database.write(lambda db: ClaimSet(db, [stale]).place())
    assert (usage(database), published_numbers) == (0, [1])
