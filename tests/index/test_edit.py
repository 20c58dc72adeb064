"""An edited snapshot equals one built from scratch, and the original snapshot does not change."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.index import build
from placement.index.contents import tables_of
from placement.index.edit import with_classes, with_providers, with_usage
from placement.index.slots import SlotSet
from placement.index.snapshot import Snapshot
from tests.index.contents import contents, meaning
from tests.strategies import NAMES, examples, members, worlds
from tests.world import Stock, World


def change_usage(draw: st.DrawFn, world: World, name: str) -> None:
    """Change the usage and the generation of a provider."""
    member = world.members[name]
    stock = {
        class_: replace(inventory, used=draw(st.integers(0, inventory.total)))
        for class_, inventory in member.stock.items()
    }
    world.members[name] = replace(member, stock=stock, generation=member.generation + 1)


def change_providers(draw: st.DrawFn, world: World) -> set[tuple[str, int]]:
    """Create, change, move or delete some providers; return the name and id of each provider to edit."""
    touched: set[tuple[str, int]] = set()
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)):
        leaf = name in world.members and all(other.parent != name for other in world.members.values())
        if leaf and draw(st.booleans()):
            del world.members[name]
            # A provider created later with this name is a new one.
            touched.add((name, world.ids.pop(name)))
            continue
        draw(members(world, name))
        # A provider moves to another root with its subtree.
        subtree = [other for other in world.members if name in world.ancestry(other)]
        touched.update((other, world.ids[other]) for other in subtree)
    return touched


@pytest.mark.parametrize("spare_slots", [0, 64], ids=["dense columns", "sparse columns"])
@examples(200)
@given(data=st.data(), world=worlds())
def test_an_edited_snapshot_equals_one_built_from_scratch(spare_slots: int, data: st.DataObject, world: World) -> None:
    # The share of slots with the class decides whether a column has a row for every slot.
    with mock.patch.object(build, "SPARE_SLOTS", spare_slots):
        check_edits(data, world)


def check_edits(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    originals: list[tuple[Snapshot, dict[str, Any]]] = []
    for _ in range(data.draw(st.integers(1, 4))):
        originals.append((snapshot, copy.deepcopy(contents(snapshot))))
        if world.members and data.draw(st.booleans()):
            names = data.draw(st.lists(st.sampled_from(sorted(world.members)), min_size=1, max_size=3, unique=True))
            for name in names:
                change_usage(data.draw, world, name)
            generations = {world.ids[name]: world.members[name].generation for name in names}
            snapshot = with_usage(snapshot, generations, world.rows(names).usages)
        else:
            touched = change_providers(data.draw, world)
            ids = {provider_id for _, provider_id in touched}
            snapshot = with_providers(snapshot, ids, world.rows({name for name, _ in touched}))
        assert meaning(snapshot) == meaning(world.snapshot())
    for original, original_contents in originals:
        assert contents(original) == original_contents


def test_a_new_provider_reuses_the_slot_of_a_deleted_one() -> None:
    """Otherwise an index would grow with every provider ever created."""
    world = World()
    world.host("first", VCPU=8)
    snapshot = world.snapshot()
    for number in range(5):
        for name in (f"host{number}", f"host{number} again"):
            world.host(name, VCPU=8)
        for name in (f"host{number}", f"host{number} again"):
            snapshot = with_providers(snapshot, [world.ids[name]], world.rows([name]))
        for name in (f"host{number}", f"host{number} again"):
            del world.members[name]
            snapshot = with_providers(snapshot, [world.ids.pop(name)], world.rows([]))
    assert snapshot.providers.end == 3
    assert len(snapshot) == 1


def test_a_snapshot_grows_beyond_its_spare_slots() -> None:
    world = World()
    world.host("first", VCPU=8, traits=["T0"], aggregates=["A0"])
    snapshot = world.snapshot()
    names = [f"more{number}" for number in range(3 * snapshot.size)]
    for name in names:
        world.host(name, VCPU=4, DISK_GB=Stock(10, step_size=5), traits=["T0"], aggregates=["A1"])
        snapshot = with_providers(snapshot, [world.ids[name]], world.rows([name]))
    snapshot = with_classes(snapshot, {id_: name for name, id_ in world.classes.items()})
    assert contents(snapshot) == contents(world.snapshot())


@pytest.mark.parametrize("spare_slots", [0, 64], ids=["dense columns", "sparse columns"])
@pytest.mark.parametrize("units", [{"step_size": 5}, {"min_unit": 4}], ids=["step_size", "min_unit"])
def test_units_added_later_count(units: dict[str, int], spare_slots: int) -> None:
    with mock.patch.object(build, "SPARE_SLOTS", spare_slots):
        world = World()
        world.host("first", DISK_GB=10)
        snapshot = world.snapshot()
        world.host("second", DISK_GB=Stock(10, **units))
        snapshot = with_providers(snapshot, [world.ids["second"]], world.rows(["second"]))
    column = snapshot.column("DISK_GB")
    assert column is not None
    everywhere = SlotSet.dense(snapshot.forest.alive)
    for amount, fitting in ((3, ["first"]), (5, ["first", "second"])):
        slots = column.fitting_slots(amount, everywhere).slots()
        assert sorted(snapshot.provider(slot).uuid for slot in slots) == fitting


def test_amounts_beyond_32_bits_are_clamped() -> None:
    """SQLite stores them."""
    large = Stock(2**40, reserved=2**35, min_unit=2**33, max_unit=2**34, step_size=2**32)
    world = World()
    world.host("built", DISK_GB=large)
    snapshot = world.snapshot()
    world.host("edited", DISK_GB=large)
    snapshot = with_providers(snapshot, [world.ids["edited"]], world.rows(["edited"]))
    column = snapshot.column("DISK_GB")
    assert column is not None
    for name in ("built", "edited"):
        amounts = column.amounts(snapshot.by_uuid[name])
        assert amounts == (2.0**40 - 2**35, 0, *[2**31 - 1] * 5, 1.0)


def test_an_amount_beyond_32_bits_fits_nowhere() -> None:
    world = World()
    world.host("host", DISK_GB=Stock(10, step_size=5))
    snapshot = world.snapshot()
    column, slots = snapshot.column("DISK_GB"), np.array([snapshot.by_uuid["host"]])
    assert column is not None
    everywhere = SlotSet.dense(snapshot.forest.alive)
    for slot_set in (SlotSet.sparse(slots), everywhere):
        assert list(column.fitting_slots(5, slot_set).slots()) == list(slots)
        for amount in (2**31, 2**70):
            assert not column.fitting_slots(amount, slot_set)


def test_a_column_contains_huge_capacities_and_limits_available_amounts_to_max_unit() -> None:
    world = World()
    world.host("host", VCPU=Stock(2**31 - 1, max_unit=7, allocation_ratio=2.0**40))
    snapshot = world.snapshot()
    column, slots = snapshot.column("VCPU"), np.array([snapshot.by_uuid["host"]])
    assert column is not None
    assert column.capacity_and_usage(slots) == ([(2**31 - 1) * 2**40], [0])
    assert column.available(snapshot.size)[slots[0]] == 7


@examples(100)
@given(data=st.data(), world=worlds())
def test_a_snapshot_built_from_the_contents_of_another_one_has_the_same_contents(
    data: st.DataObject, world: World
) -> None:
    snapshot = world.snapshot()
    for _ in range(data.draw(st.integers(0, 3))):
        touched = change_providers(data.draw, world)
        ids = {provider_id for _, provider_id in touched}
        snapshot = with_providers(snapshot, ids, world.rows({name for name, _ in touched}))
    rebuilt = build.build(tables_of(snapshot), snapshot.class_names)
    assert meaning(rebuilt) == meaning(snapshot)
    assert not rebuilt.changes
