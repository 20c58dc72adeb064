"""Of several operations on a consumer around the expiry of its lease, exactly one takes effect."""

from __future__ import annotations

import functools
import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from placement import errors, signals
from placement.db.schema.tables import claims, consumers
from placement.index.live import LiveIndex
from placement.objects.claims import lease_sweep, leases, release
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests.children import PATIENCE, until
from tests.db import interleaving, lease, sql_hooks
from tests.made import opened

pytestmark = pytest.mark.every_database

HOST, TOTAL = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c012", 10_000


@pytest.fixture
def host(database):
    database.write(
        lambda db: LockedProvider.create(db, uuid=HOST, name="host").replace_inventories([Inventory("VCPU", TOTAL)])
    )


def put(database, consumer, amount=1, **options):
    claim = Claim(consumer, {HOST: {"VCPU": amount}}, Owner("project", "user"), **options)
    database.write(lambda db: ClaimSet(db, [claim]).place())


def lease_consumer(database, seconds=3600):
    consumer = str(uuid.uuid4())
    put(database, consumer)
    database.write(lambda db: leases.extend(db, consumer, seconds))
    return consumer


def holding_of(database, consumer):
    return database.read(lambda db: Holding.find(db, consumer))


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.usefixtures("host")
def test_a_consumer_that_an_extension_could_not_lock_is_not_extended(database):
    """The consumer is created after the extension has looked for its row, so a sweep or extension would not wait."""
    consumer = str(uuid.uuid4())
    with opened(database.url) as elsewhere:
        appear = functools.partial(put, elsewhere, consumer)
        with interleaving.just_after(database, "UPDATE consumers", appear), pytest.raises(errors.NoAllocations):
            database.write(lambda db: leases.extend(db, consumer, 3600))
    assert holding_of(database, consumer).expires_at is None, (
        "the extension has changed a consumer that it had not locked"
    )


def extend(database, consumer):
    """Commit an extension that read the expiry of the lease before it had expired."""
    of_consumer = (
        claims.c.consumer_id == sa.select(consumers.c.id).where(consumers.c.uuid == consumer).scalar_subquery()
    )
    later = sa.update(claims).where(of_consumer)
    database.write(lambda db: db.execute(later.values(expires_at=leases.expiry_after(db, 3600))))


def create_again(database, consumer):
    database.write(lambda db: release.end_consumer(db, consumer))
    put(database, consumer)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("meanwhile", [extend, create_again])
def test_a_consumer_is_not_ended_for_a_lease_that_changed_before_the_lock(database, meanwhile):
    consumer = lease_consumer(database)
    lease.expire(database, consumer)
    between = []

    def before(statement):
        if "FOR UPDATE" in statement and not between:
            between.append(statement)
            with ThreadPoolExecutor(1) as threads:
                threads.submit(meanwhile, database, consumer).result(PATIENCE)

    with sql_hooks.statements(database.engine, before):
        assert database.write(leases.release_expired) == 0
    assert between
    assert holding_of(database, consumer) is not None


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_sweep_does_not_overtake_an_extension_that_began_before_the_expiry(database):
    consumer = lease_consumer(database)
    began, expired = [], []

    def sweep():
        lease.expire(database, consumer)
        expired.append(database.write(leases.release_expired))

    def before(statement):
        if statement.startswith("UPDATE claims") and not began:
            began.append(statement)
            with ThreadPoolExecutor(1) as threads:
                threads.submit(sweep).result(PATIENCE)

    with sql_hooks.statements(database.engine, before):
        database.write(lambda db: leases.extend(db, consumer, 3600))
    assert expired == [0]
    assert database.write(leases.release_expired) == 0
    assert holding_of(database, consumer) is not None


@pytest.mark.usefixtures("host")
def test_a_lease_expires_only_if_no_extension_or_release_succeeds(database, monkeypatch):
    monkeypatch.setattr(lease_sweep, "ATTEMPTS", 1000)
    count, chance, expired = 40, random.Random(7), []
    signals.leases_expired.connect(expired.append)
    consumer_uuids = [lease_consumer(database) for _ in range(count)]
    for consumer in consumer_uuids:
        lease.expire(database, consumer, -chance.uniform(0.1, 0.6))

    def try_all(work):
        """Return the consumers, in a random order, for which ``work`` succeeded."""
        done = set()
        for consumer in chance.sample(consumer_uuids, count):
            time.sleep(0.01)
            until(lambda: is_decided(work, consumer, done), f"{consumer} collides in each attempt")  # noqa: B023
        return done

    def is_decided(work, consumer, done):
        """Whether ``work`` succeeded or found no consumer; it collides while faster transactions interfere."""
        try:
            database.write(lambda db: work(db, consumer))
        except errors.TooManyConflicts:
            return False
        except errors.NoAllocations:
            return True
        done.add(consumer)
        return True

    def sweep():
        end = time.monotonic() + 0.8
        while time.monotonic() < end:
            lease_sweep.sweep(database)

    try:
        with ThreadPoolExecutor(4) as threads:
            sweeps = [threads.submit(sweep) for _ in range(2)]
            extending = threads.submit(try_all, lambda db, consumer: leases.extend(db, consumer, 3600))
            releasing = threads.submit(try_all, release.end_consumer)
            extended, released = extending.result(PATIENCE), releasing.result(PATIENCE)
            for sweep_result in sweeps:
                sweep_result.result(PATIENCE)
        lease_sweep.sweep(database)
    finally:
        signals.leases_expired.disconnect(expired.append)
    remaining = {consumer for consumer in consumer_uuids if holding_of(database, consumer) is not None}
    assert remaining == extended - released
    assert sum(expired) == count - len(extended | released)
    _, used = LiveIndex(database).current().column("VCPU").usage()
    assert used.sum() == len(remaining)
