"""The cached counts of consumers equal the database after any write, and only changed providers are counted again."""

from __future__ import annotations

import random
import uuid

import pytest
import sqlalchemy as sa

from placement.db import batches
from placement.db.schema.tables import allocations, resource_providers
from placement.index import build, live
from placement.index.live import LiveIndex
from placement.objects import usage
from placement.objects.claims import release
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests import servers
from tests.index.machine import search
from tests.index.writes import Writer
from tests.made import opened
from tests.run_length import LONG

OWNER = Owner("project", "user", "INSTANCE")
NAMES = ("one", "two", "three", "four")


def count_consumers(index):
    """Return the counts that are not 0, by provider id."""
    snapshot = index.current()
    counts = index.consumers.counts_of(snapshot).tolist()
    return {
        provider.id: counts[slot]
        for slot in snapshot.providers.slots().tolist()
        if (provider := snapshot.provider(slot)) and counts[slot]
    }


def test_the_counts_equal_the_database_after_any_write(database):
    for seed in range(20 if LONG else 3):
        writer, index = Writer(database, random.Random(seed), f"w{seed}"), LiveIndex(database)
        for _ in range(150):
            for _ in range(writer.chance.choice((1, 1, 2, 5))):
                writer.write()
            if writer.chance.random() < 0.5:
                index.consumers.rebase(index.current())
                writer.write()
            assert count_consumers(index) == database.read(count_distinct)


def test_a_consumer_ended_by_another_process_is_not_counted(database):
    """A deletion of all allocations advances no generation of a provider."""
    index = LiveIndex(database)
    create_providers(database)
    consumers = [claim(database, "one") for _ in range(3)]
    assert [*count_consumers(index).values()] == [3]
    with opened(str(database.engine.url.render_as_string(hide_password=False))) as other:
        other.write(lambda db: release.end_consumer(db, consumers[1]))
    assert [*count_consumers(index).values()] == [2]


def test_consumers_are_counted_again_if_a_replacement_leaves_the_usage_unchanged(database):
    """The usage does not change, but the generation does."""
    index = LiveIndex(database)
    create_providers(database)
    large = claim(database, "one", 2)
    assert [*count_consumers(index).values()] == [1]
    database.write(lambda db: release.end_consumer(db, large))
    claim(database, "one")
    claim(database, "one")
    assert [*count_consumers(index).values()] == [2]


def test_a_new_provider_reuses_the_slot_of_a_deleted_one(database):
    """The new provider has the same generation and usage."""
    index = LiveIndex(database)
    create_providers(database, "old")
    consumers = [claim(database, "old", 2), claim(database, "old")]
    database.write(lambda db: release.end_consumer(db, consumers[1]))
    snapshot = index.current()
    assert [*count_consumers(index).values()] == [1]
    database.write(lambda db: release.end_consumer(db, consumers[0]))
    database.write(lambda db: LockedProvider.lock(db, "old").delete())
    create_providers(database, "new")
    for _ in range(2):
        claim(database, "new")
    slot = snapshot.by_uuid["old"]
    assert index.current().by_uuid == {"new": slot}
    assert index.current().generations.item(slot) == snapshot.generations.item(slot)
    assert [*count_consumers(index).values()] == [2]


def test_a_provider_that_is_newer_than_the_snapshot_is_left_out(database):
    index = LiveIndex(database)
    create_providers(database, "old")
    claim(database, "old")
    snapshot = index.current()
    create_providers(database, "new")
    for _ in range(2):
        claim(database, "new")
    counts = index.consumers.counts_of(snapshot)
    assert (counts[snapshot.by_uuid["old"]], counts.sum()) == (1, 1)


@pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
def test_only_changed_providers_are_counted_again(database, monkeypatch):
    create_providers(database)
    for name in NAMES:
        claim(database, name)
    counted_ids = []
    count = usage.count_by_provider
    monkeypatch.setattr(usage, "count_by_provider", lambda db, ids: (counted_ids.append([*ids]), count(db, ids))[1])
    index = LiveIndex(database)
    assert [*count_consumers(index).values()] == [1, 1, 1, 1]
    count_consumers(index)
    assert [len(ids) for ids in counted_ids] == [4]
    claim(database, "two")
    assert [*count_consumers(index).values()] == [1, 2, 1, 1]
    assert [len(ids) for ids in counted_ids[1:]] == [1]


def test_a_consumer_of_several_classes_counts_once(database):
    """If all allocations are of one class, the allocations are counted, otherwise the distinct consumers."""
    create_providers(database)
    amounts_of_claims = ({"VCPU": 1, "DISK_GB": 1}, {"VCPU": 1}, {"DISK_GB": 1})
    claims_by_provider = {
        "one": amounts_of_claims[:1],
        "two": amounts_of_claims[1:2] * 2,
        "three": amounts_of_claims,
        "four": amounts_of_claims[1:],
    }
    for name, claims in claims_by_provider.items():
        for amounts in claims:
            claim(database, name, **amounts)
    assert count_consumers(LiveIndex(database)) == database.read(count_distinct)
    assert [*database.read(count_distinct).values()] == [1, 2, 3, 2]


@pytest.mark.parametrize("positions", [[], [1], [2, 3], [1, 4], [1, 2, 3, 4], [4, 99]])
@pytest.mark.parametrize("size", [1, 2, 999])
def test_only_the_requested_providers_are_counted(database, monkeypatch, positions, size):
    """Dense ids are a range in SQL, others a list."""
    monkeypatch.setattr(batches, "BATCH_SIZE", size)
    create_providers(database)
    for name in ("one", "three", "three", "four"):
        claim(database, name)
    existing_ids = database.read(all_ids)
    ids = [existing_ids[number - 1] if number < 9 else existing_ids[-1] + 95 for number in positions]
    expected = dict(zip(existing_ids, (1, 0, 2, 1), strict=True))
    assert database.read(lambda db: usage.count_by_provider(db, ids)) == {
        provider_id: expected[provider_id] for provider_id in ids if expected.get(provider_id)
    }


def count_distinct(db):
    """Return the numbers of consumers by provider id, counted by one statement."""
    provider, consumer = allocations.c.resource_provider_id, allocations.c.consumer_id
    return dict(db.execute(sa.select(provider, sa.func.count(sa.distinct(consumer))).group_by(provider)).all())


def all_ids(db):
    return sorted(db.execute(sa.select(resource_providers.c.id)).scalars())


def create_providers(database, *names):
    def work(db):
        for name in names or NAMES:
            inventories = [Inventory("VCPU", 8), Inventory("DISK_GB", 8)]
            LockedProvider.create(db, uuid=name, name=name).replace_inventories(inventories)

    database.write(work)


def claim(database, provider, amount=1, **amounts):
    consumer = str(uuid.uuid4())
    amounts_by_provider = {provider: amounts or {"VCPU": amount}}
    database.write(lambda db: ClaimSet(db, [Claim(consumer, amounts_by_provider, OWNER)]).place())
    return consumer


def test_the_counts_equal_the_database_after_renewals(database, monkeypatch):
    """New arrays have other slots, and fewer."""
    monkeypatch.setattr(live, "_MIN_CHANGES", 3)
    monkeypatch.setattr(live, "_RENEWAL_INTERVAL", 0)
    monkeypatch.setattr(build, "SPARE_SLOTS", 1)
    writer, index, renewals = Writer(database, random.Random(5)), LiveIndex(database), set()
    for _ in range(60):
        for _ in range(4):
            writer.write()
        search(index)
        renewals.add(index._renewal)
        assert count_consumers(index) == database.read(count_distinct)
    assert len(renewals) > 9
