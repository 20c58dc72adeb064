"""Inventories and sums of a resource class equal the database, in dense and sparse columns, built and edited."""

from __future__ import annotations

import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.index import build
from placement.index.column import Totals
from placement.index.edit import with_providers, with_usage
from placement.index.snapshot import Snapshot
from tests.index.test_edit import change_providers, change_usage
from tests.strategies import examples, worlds
from tests.world import Stock, World


def inventories(snapshot: Snapshot) -> dict[str, dict[str, Stock]]:
    """Return the inventories of every class that some provider has, by the uuid of the provider."""
    by_class = {}
    for name, class_id in snapshot.class_ids.items():
        column = snapshot.columns.get(class_id)
        if column is None:
            continue
        arrays = column.inventories()
        assert [*arrays.slots] == sorted(arrays.slots)
        assert all(len(array) == len(arrays.slots) for array in arrays)
        by_class[name] = {
            snapshot.provider(int(slot)).uuid: Stock(total, reserved, min_unit, max_unit, step, ratio, usage)
            for slot, _, usage, min_unit, max_unit, step, total, reserved, ratio in zip(
                *(array.tolist() for array in arrays), strict=True
            )
        }
        for slot, capacity in zip(arrays.slots.tolist(), arrays.capacity.tolist(), strict=True):
            assert capacity == column.amounts(slot).capacity
    return {name: stock_by_provider for name, stock_by_provider in by_class.items() if stock_by_provider}


def stocks(world: World) -> dict[str, dict[str, Stock]]:
    """Return the expected result of ``inventories``."""
    by_class: dict[str, dict[str, Stock]] = {}
    for member in world.members.values():
        for name, stock in member.stock.items():
            by_class.setdefault(name, {})[member.name] = replace(stock, max_unit=stock.effective_max_unit)
    return by_class


def totals(world: World) -> dict[str, Totals]:
    sums = {}
    for name in world.classes:
        class_stocks = [member.stock[name] for member in world.members.values() if name in member.stock]
        capacity = sum(math.floor((stock.total - stock.reserved) * stock.allocation_ratio) for stock in class_stocks)
        usage, reserved = sum(stock.used for stock in class_stocks), sum(stock.reserved for stock in class_stocks)
        sums[name] = Totals(capacity, usage, reserved)
    return sums


@pytest.mark.parametrize("spare_slots", [0, 64], ids=["dense columns", "sparse columns"])
@examples(100)
@given(data=st.data(), world=worlds())
def test_amounts_equal_the_database(spare_slots: int, data: st.DataObject, world: World) -> None:
    with mock.patch.object(build, "SPARE_SLOTS", spare_slots):
        snapshot = world.snapshot()
        assert inventories(snapshot) == stocks(world)
        assert snapshot.totals() == totals(world)
        for _ in range(data.draw(st.integers(1, 3))):
            if world.members and data.draw(st.booleans()):
                name = data.draw(st.sampled_from(sorted(world.members)))
                change_usage(data.draw, world, name)
                generations = {world.ids[name]: world.members[name].generation}
                snapshot = with_usage(snapshot, generations, world.rows([name]).usages)
            else:
                touched = change_providers(data.draw, world)
                ids = {provider_id for _, provider_id in touched}
                snapshot = with_providers(snapshot, ids, world.rows({name for name, _ in touched}))
            assert inventories(snapshot) == stocks(world)
            assert snapshot.totals() == totals(world)


def test_the_totals_of_a_class_without_inventory_are_zero() -> None:
    world = World()
    world.host("host", VCPU=4)
    world.classes["FPGA"] = 7
    snapshot = world.snapshot()
    assert snapshot.totals() == {"VCPU": Totals(4, 0, 0), "FPGA": Totals()}


def test_amounts_of_a_dense_column_leave_out_slots_without_inventory() -> None:
    world = World()
    world.host("first", VCPU=4)
    world.host("none")
    world.host("third", VCPU=Stock(8, reserved=2, used=3))
    column = world.snapshot().column("VCPU")
    assert column is not None
    arrays = column.inventories()
    assert arrays.total.tolist() == [4, 8]
    assert arrays.reserved.tolist() == [0, 2]
    assert np.array_equal(arrays.capacity, [4.0, 6.0])
    assert column.totals() == (10, 3, 2)
