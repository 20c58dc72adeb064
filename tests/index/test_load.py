"""Every way of reading the rows of a database returns them as they were written."""

from __future__ import annotations

import random

import numpy as np
import pytest
import sqlalchemy as sa

from placement.db.engine import dialects
from placement.db.schema.tables import allocations, inventories, resource_providers, traits
from placement.index import load, pages
from placement.index.build import build
from placement.index.position import Position
from placement.index.tables import Tables
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.inventory import AMOUNTS, Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from tests.index.contents import contents
from tests.index.writes import Writer
from tests.made import opened
from tests.world import Stock, World


def write(database, world):
    """Write a world through the objects, and record the ids of its providers in it."""
    owner = Owner("project", "user")
    for name, member in world.members.items():

        def work(db, name=name, member=member):
            provider = LockedProvider.create(
                db, uuid=name, name=f"{name}\x07 \\'\", ü\U0001f427", parent_uuid=member.parent
            )
            records = [
                Inventory(
                    name,
                    stock.total,
                    stock.reserved,
                    stock.min_unit,
                    stock.effective_max_unit,
                    stock.step_size,
                    stock.allocation_ratio,
                )
                for name, stock in member.stock.items()
            ]
            provider.replace_inventories(records)
            provider.replace_traits(member.traits)
            provider.replace_aggregates(member.aggregates, advance=False)
            return provider.record.id

        world.ids[name] = database.write(work)
        for number in range(2):
            amounts = {resource_class: stock.used // 2 for resource_class, stock in member.stock.items() if stock.used}
            if amounts:
                claim = Claim(f"{name} {number}", {name: amounts}, owner)
                database.write(lambda db, claim=claim: ClaimSet(db, [claim]).place())


@pytest.fixture
def world():
    """A sharing provider, and a tree."""
    world = World()
    world.host("root", traits=["HW_CPU_X86_AVX"], aggregates=["a1", "a2"], VCPU=Stock(8, allocation_ratio=16.1, used=4))
    world.host("child", parent="root", VCPU=8, MEMORY_MB=Stock(2**31 - 1, reserved=5, step_size=2, used=2**30))
    world.host("grandchild", parent="child", traits=["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"])
    world.sharing("shared", aggregates=["a2"], DISK_GB=Stock(100, min_unit=2, max_unit=50, allocation_ratio=0.3))
    return world


def read_all(database):
    return database.snapshot(load.all_rows).rows()


def read_some(database, ids):
    return database.snapshot(lambda db: load.of_providers(db, ids))


TABLES = ("providers", "inventories", "usages", "traits", "aggregates")


def as_sets(rows):
    """Return the rows of each table as sorted tuples, which do not depend on order or form."""
    return {name: sorted(map(tuple, getattr(rows, name)), key=lambda row: row[:2]) for name in TABLES}


def test_loaded_rows_equal_the_written_rows(database, world):
    write(database, world)
    rows, names = read_all(database), database.snapshot(load.class_names)
    loaded = contents(build(Tables.of(rows), names))
    ids = {name: class_id for class_id, name in names.items()}
    world.classes = {name: ids[name] for name in world.classes}
    expected = contents(world.snapshot())
    # A world has neither names nor generations of its writes; everything else is compared.
    assert set(names.values()) > set(world.classes)
    for reported in (loaded, expected):
        reported["classes"] = reported["trait ids"] = None
        reported["providers"] = {uuid: (facts[0], *facts[3:]) for uuid, facts in reported["providers"].items()}
    assert loaded == expected
    ids = database.read(lambda db: dict(db.execute(sa.select(traits.c.name, traits.c.id)).all()))
    assert rows.trait_ids == {name: ids[name] for _, name in rows.traits}


def test_names_and_generations_are_loaded(database, world):
    write(database, world)
    rows = {row[1]: (row[2], row[3]) for row in read_all(database).providers}
    for uuid in world.members:
        provider = database.read(lambda db, uuid=uuid: ResourceProvider.get(db, uuid))
        assert rows[uuid] == (provider.name, provider.generation)


def test_ratios_are_read_as_claims_read_them(database):
    def stock(ratio):
        return Inventory("VCPU", 10**6, allocation_ratio=ratio)

    chance = random.Random(1)
    ratios = [16.1, 1 / 3, 0.1, 1.0, 1e-4, 9.87654321e3, *(chance.uniform(0, 30) for _ in range(20))]
    for number, ratio in enumerate(ratios):
        uuid = f"p{number}"
        database.write(lambda db, uuid=uuid: LockedProvider.create(db, uuid=uuid, name=uuid))
        database.write(lambda db, uuid=uuid, ratio=ratio: LockedProvider.lock(db, uuid).add_inventory(stock(ratio)))
    claimed = database.read(
        lambda db: dict(db.execute(sa.select(inventories.c.resource_provider_id, inventories.c.allocation_ratio)).all())
    )
    assert len(claimed) == len(ratios)
    assert {row[0]: row[7] for row in read_all(database).inventories} == claimed
    assert {row[0]: row[7] for row in read_some(database, claimed).inventories} == claimed


def test_rows_of_some_providers_equal_their_part_of_all_rows(database, world):
    write(database, world)
    writer = Writer(database, random.Random(5))
    for _ in range(100):
        writer.write()
    rows = read_all(database)
    for field in TABLES:
        assert len(getattr(rows, field)), f"there are no {field} to compare"
    ids = [row[0] for row in rows.providers]
    assert as_sets(read_some(database, ids)) == as_sets(rows)
    assert read_some(database, ids).trait_ids == rows.trait_ids
    assert as_sets(read_some(database, ids[:1])) == {
        name: [row for row in table_rows if row[0] == ids[0]] for name, table_rows in as_sets(rows).items()
    }
    generations, usages = database.snapshot(lambda db: load.generations_and_usages(db, ids[1:]))
    assert generations == {row[0]: row[3] for row in rows.providers if row[0] != ids[0]}
    assert sorted(usages) == [row for row in as_sets(rows)["usages"] if row[0] != ids[0]]


def test_rows_of_several_statements_and_pages_are_loaded(database, monkeypatch):
    providers = [{"uuid": f"u{n}", "name": f"n{n}", "generation": n} for n in range(800)]
    with database.engine.begin() as connection:
        connection.execute(sa.insert(resource_providers), providers)
        ids = connection.execute(sa.select(resource_providers.c.id)).scalars().all()
        stock = dict.fromkeys(AMOUNTS, 1) | {"resource_class_id": 0}
        connection.execute(sa.insert(inventories), [stock | {"resource_provider_id": id_} for id_ in ids])
        amount = {"resource_class_id": 0, "used": 2**31 - 1}
        claims = [amount | {"resource_provider_id": id_, "consumer_id": name} for id_ in ids for name in "ab"]
        connection.execute(sa.insert(allocations), claims)
    monkeypatch.setattr(pages, "PAGE_SIZE", 300)
    rows = read_all(database)
    assert sorted(row[3] for row in rows.providers) == list(range(800))
    assert sorted(row[0] for row in rows.inventories) == sorted(ids)
    assert as_sets(rows)["usages"] == [(id_, 0, 2 * (2**31 - 1)) for id_ in sorted(ids)]
    monkeypatch.setattr(load, "_BATCH_SIZE", 100)
    assert as_sets(read_some(database, ids)) == as_sets(rows)


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize("max_len", [4, 5, 20, 21, 22, 23, 150, 1000])
def test_texts_truncated_by_the_server_lose_nothing(database, world, monkeypatch, max_len):
    """A text may be truncated inside a number, or between rows."""
    write(database, world)
    for number in range(5):
        with opened(database.url) as another:
            another.write(lambda db, number=number: LockedProvider.create(db, uuid=f"u{number}", name=f"n{number}"))
    all_rows, position = read_all(database), database.read(Position.now)
    monkeypatch.setattr(dialects, "GROUP_CONCAT_MAX_LEN", max_len)
    with opened(database.url) as truncating:
        assert as_sets(read_all(truncating)) == as_sets(all_rows)
        assert truncating.read(Position.now).newest == position.newest


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_texts_are_not_truncated_needlessly(database):
    """Otherwise the driver would read a row for each number, which takes longer than anything else."""
    assert database.read(lambda db: db.execute(sa.text("SELECT @@group_concat_max_len")).scalar()) == 2**23


def test_the_index_has_the_roots_of_the_database(database, world, caplog):
    write(database, world)
    snapshot = build(Tables.of(read_all(database)), database.snapshot(load.class_names))
    for uuid, slot in snapshot.by_uuid.items():
        provider = database.read(lambda db, uuid=uuid: ResourceProvider.get(db, uuid))
        assert snapshot.provider(snapshot.provider(slot).root).uuid == provider.root_uuid
        assert (snapshot.provider(slot).parent < 0) == (provider.parent_uuid is None)
    assert "In the database" not in caplog.text, "no row is inconsistent"


def test_leftover_rows_of_a_deleted_provider_are_not_loaded(database, world):
    write(database, world)
    absent = max(world.ids.values()) + 1
    with database.engine.begin() as connection:
        stock = dict.fromkeys(AMOUNTS, 1) | {"resource_class_id": 0, "resource_provider_id": absent}
        connection.execute(sa.insert(inventories), stock)
    assert as_sets(read_some(database, [absent])) == as_sets(read_some(database, []))
    snapshot = build(Tables.of(read_all(database)), database.snapshot(load.class_names))
    assert absent not in snapshot.by_id


def test_no_usage_is_left_out_of_a_checksum():
    ids = np.arange(2000)
    assert (load.weight(ids, 0) > 0).all()
    assert (load.weight(ids, 10007) > 0).all()


def test_the_checksum_covers_all_rows(database, world):
    assert database.snapshot(lambda db: load.checksum(db, 0, 2**31)) == (0, 0, 0, 0)
    write(database, world)
    rows = read_all(database)
    expected = (
        len(rows.providers),
        max(row[0] for row in rows.providers),
        sum(row[3] for row in rows.providers),
        sum(int(usage * load.weight(provider_id, class_id)) for provider_id, class_id, usage in rows.usages),
    )
    assert database.snapshot(lambda db: load.checksum(db, 0, 2**31)) == expected
    assert expected[2] > 0
    assert expected[3] > 2**30, "the usage of this world is large"
