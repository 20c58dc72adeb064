"""bench/fill.py creates the clouds of its topologies, and a running service indexes them."""

from __future__ import annotations

import pytest

from bench import fill
from placement.index.live import LiveIndex
from placement.objects.locked_provider import LockedProvider


@pytest.mark.parametrize(
    ("topology", "size", "stock"),
    [
        ("flat", 1, {"VCPU": 1, "MEMORY_MB": 1, "DISK_GB": 1}),
        ("nested", 7, {"VCPU": 2, "MEMORY_MB": 2, "DISK_GB": 1, "FPGA": 2, "VGPU": 2}),
        ("devices", 9, {"VCPU": 1, "MEMORY_MB": 1, "DISK_GB": 1, "PGPU": 8}),
    ],
)
def test_the_filled_cloud_matches_its_topology(database, topology, size, stock):
    live_index, hosts = LiveIndex(database), 90
    assert len(live_index.current()) == 0
    fill.fill(database.url, topology, hosts, used=0.5)
    snapshot = live_index.current()
    assert len(snapshot) == size * hosts
    assert sum(snapshot.forest.is_root) == hosts
    assert {len(snapshot.forest.tree(int(root))) for root in snapshot.forest.is_root.nonzero()[0]} == {size}
    providers = [snapshot.provider(slot) for slot in snapshot.by_id.values()]
    for name, count in stock.items():
        column, class_id = snapshot.column(name), snapshot.class_ids[name]
        stocked = [slot for slot in snapshot.providers.slots().tolist() if class_id in snapshot.provider(slot).classes]
        assert len(stocked) == count * hosts
        for slot in stocked:
            inventory = column.amounts(slot)
            assert inventory.used == int(inventory.capacity * 0.5)
    roots = [provider for provider in providers if provider.parent < 0]
    assert {len(provider.aggregates) for provider in roots} == {3}
    assert {len(provider.traits - {fill.RARE}) for provider in roots} == {3}
    assert snapshot.traits[fill.TRAIT].count == hosts
    assert snapshot.traits[fill.RARE].count == 1
    assert snapshot.aggregates[fill.aggregate("rack-0")].count == 40
    assert snapshot.aggregates[fill.aggregate("zone-0")].count == 40


@pytest.mark.every_database
def test_a_cloud_can_be_filled_again_and_written_to(database):
    fill.fill(database.url, "flat", 3)
    fill.fill(database.url, "nested", 2)
    database.write(lambda db: LockedProvider.create(db, uuid="mine", name="mine"))
    assert len(LiveIndex(database).current()) == 3 + 2 * 7 + 1
