"""A search finds the capacity of expired leases at once, and succeeds even if they cannot be released."""

from __future__ import annotations

import uuid

import pytest

from placement.index import live
from placement.index.live import LiveIndex
from placement.index.store import IndexStore
from placement.objects.claims import lease_sweep, leases, release
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.objects.usage import Usage
from tests.clock import Clock
from tests.db import lease, sql_hooks
from tests.made import opened

pytestmark = pytest.mark.every_database

HOST = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c011"


@pytest.fixture
def consumer(database):
    """A consumer that holds all eight VCPU of a host, for an hour."""
    database.write(
        lambda db: LockedProvider.create(db, uuid=HOST, name="host").replace_inventories([Inventory("VCPU", 8)])
    )
    consumer = str(uuid.uuid4())
    claim = Claim(consumer, {HOST: {"VCPU": 8}}, Owner("project", "user"))
    database.write(lambda db: ClaimSet(db, [claim]).place())
    database.write(lambda db: leases.extend(db, consumer, 3600))
    return consumer


def hold_and_expire(database):
    """Have another consumer claim two VCPU, with a lease that has expired."""
    other = str(uuid.uuid4())
    database.write(lambda db: ClaimSet(db, [Claim(other, {HOST: {"VCPU": 2}}, Owner("project", "user"))]).place())
    database.write(lambda db: leases.extend(db, other, 60))
    lease.expire(database, other)


def vcpu_usage(snapshot):
    slots, amounts = snapshot.column("VCPU").usage()
    return int(amounts[slots == snapshot.by_uuid[HOST]].sum())


def stored_vcpu_usage(database):
    return database.read(lambda db: Usage.of_provider(db, ResourceProvider.get(db, HOST)))["VCPU"]


def read_only(url):
    """Return the URL of the same database for connections that cannot write."""
    kind = url.get_backend_name()
    if kind == "sqlite":
        return url.set(database=f"file:{url.database}", query={"mode": "ro", "uri": "true"})
    if kind == "postgresql":
        return url.update_query_dict({"options": "-c default_transaction_read_only=on"})
    return url.update_query_dict({"init_command": "SET SESSION TRANSACTION READ ONLY"})


def test_a_search_releases_expired_leases_and_another_worker_sees_the_release(database, consumer):
    index, other = LiveIndex(database), LiveIndex(database)
    assert (vcpu_usage(index.current()), vcpu_usage(other.current())) == (8, 8)
    lease.expire(database, consumer)
    assert vcpu_usage(index.current()) == 0
    assert stored_vcpu_usage(database) == 0
    assert vcpu_usage(other.current()) == 0


def test_each_search_releases_the_leases_that_have_expired_by_then(database, consumer):
    index = LiveIndex(database)
    lease.expire(database, consumer)
    assert vcpu_usage(index.current()) == 0
    for _ in range(3):
        hold_and_expire(database)
        assert vcpu_usage(index.current()) == 0


@pytest.mark.parametrize("has_file", [False, True])
def test_the_first_search_releases_expired_leases(database, consumer, tmp_path, has_file):
    store = IndexStore(tmp_path / "index" if has_file else None)
    lease.expire(database, consumer)
    assert vcpu_usage(LiveIndex(database, store=store).current()) == 0
    hold_and_expire(database)
    assert vcpu_usage(LiveIndex(database, store=store).current()) == 0


def test_finding_expired_leases_takes_no_extra_statement(database, consumer):
    index = LiveIndex(database)
    index.current()
    statements = []
    with sql_hooks.statements(database.reading_engine, statements.append):
        index.current()
    assert len(statements) == 1


def test_a_search_releases_only_some_of_many_expired_leases(database, consumer, monkeypatch):
    monkeypatch.setattr(release, "BATCH", 1)
    monkeypatch.setattr(live, "SWEEP_TIME_LIMIT", 0)
    index = LiveIndex(database)
    lease.expire(database, consumer)
    assert vcpu_usage(index.current()) == 0
    for _ in range(2):
        hold_and_expire(database)
    assert (vcpu_usage(index.current()), index.has_leases_left) == (2, True), "one of two"
    assert (vcpu_usage(index.current()), index.has_leases_left) == (0, False)


def test_an_index_has_no_leases_left_after_a_sweep_released_them(database, consumer, monkeypatch):
    monkeypatch.setattr(release, "BATCH", 1)
    monkeypatch.setattr(live, "SWEEP_TIME_LIMIT", 0)
    index = LiveIndex(database)
    lease.expire(database, consumer)
    index.current()
    for _ in range(2):
        hold_and_expire(database)
    index.current()
    assert index.has_leases_left
    assert lease_sweep.sweep(database)
    assert vcpu_usage(index.current()) == 0
    assert not index.has_leases_left


def test_searches_of_a_read_only_database_succeed(database, consumer, monkeypatch):
    clock = Clock(1000.0)
    monkeypatch.setattr(lease_sweep, "time", clock)
    lease.expire(database, consumer)
    with opened(read_only(database.url)) as read_only_database:
        index = LiveIndex(read_only_database)
        assert vcpu_usage(index.current()) == 8
        statements = []
        with sql_hooks.statements(read_only_database.engine, statements.append):
            assert vcpu_usage(index.current()) == 8
            assert not statements, "the next sweep is due only after a few seconds"
            clock.now += 60
            assert vcpu_usage(index.current()) == 8
            assert statements
    assert stored_vcpu_usage(database) == 8
