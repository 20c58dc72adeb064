"""A column with changes equals one built from scratch, by every method, whether its rows are sparse or dense."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.index.column import ABSENT, Amounts, Column, Totals, column_arrays
from placement.index.slots import SlotSet
from placement.objects import capacity as rule
from tests.strategies import examples

#: The number of slots when the rows were built, and later.
BUILT, SIZE = 9, 14

Model = dict[int, Amounts]


@st.composite
def some_amounts(draw: st.DrawFn) -> Amounts:
    """Draw an inventory, which may be over-committed, full, or without constraints."""
    total, reserved = draw(st.integers(1, 8)), draw(st.integers(0, 2))
    ratio = draw(st.sampled_from((1.0, 1.0, 1.5, 0.3)))
    min_unit, step_size = draw(st.sampled_from(((1, 1), (1, 1), (2, 1), (1, 2), (3, 3))))
    return Amounts(
        capacity=float(rule.capacity(total, reserved, ratio)),
        used=float(draw(st.sampled_from((0, 0, 1, 3, 9)))),
        min_unit=min_unit,
        max_unit=draw(st.sampled_from((8, 8, 1, 4))),
        step_size=step_size,
        total=total,
        reserved=reserved,
        allocation_ratio=ratio,
    )


def built(model: Model, size: int, *, dense: bool) -> Column:
    """Build a column from scratch."""
    slots = sorted(model)
    values = zip(*(model[slot] for slot in slots), strict=True) if slots else ((),) * len(ABSENT)
    fields = tuple(np.array(column, dtype=np.float64) for column in values)
    # Rows are sparse if the snapshot has more slots than this number.
    arrays = column_arrays(np.array(slots, dtype=np.intp), fields, size if dense else 10_000)
    assert ("slots" in arrays) is not dense
    return Column.from_arrays(arrays)


def check(column: Column, model: Model, order: list[int]) -> None:
    """Compare all that the methods of a column return with a model: the amounts by slot."""
    slots = np.array(sorted(model), dtype=np.intp)
    assert [column.amounts(slot) for slot in range(SIZE)] == [model.get(slot, ABSENT) for slot in range(SIZE)]
    assert column.available(SIZE).tolist() == [model.get(slot, ABSENT).available for slot in range(SIZE)]
    check_fitting(column, model)
    assert rows_of(column.inventories()) == model
    assert column.inventories().slots.tolist() == slots.tolist()
    assert column.has_inventories is bool(model)
    for chosen in (order, [slot for slot in order if slot in model]):
        inventories = column.inventories_of(np.array(chosen, dtype=np.intp))
        assert inventories.slots.tolist() == [slot for slot in chosen if slot in model]
        assert rows_of(inventories) == {slot: model[slot] for slot in chosen if slot in model}
    members = [slot for slot in order if slot in model]
    capacity, used = column.exact_capacity_and_usage(np.array(members, dtype=np.intp))
    assert capacity.tolist() == [model[slot].capacity for slot in members]
    assert used.tolist() == [model[slot].used for slot in members]
    whole = ([int(model[slot].capacity) for slot in members], [int(model[slot].used) for slot in members])
    assert column.capacity_and_usage(np.array(members, dtype=np.intp)) == whole
    over = [slot for slot, amounts in sorted(model.items()) if amounts.used > amounts.capacity]
    assert column.over_committed().tolist() == over
    assert column.totals() == totals_of(model)
    usage = dict(zip(*map(list, column.usage()), strict=True))
    assert [usage.get(slot, 0) for slot in range(SIZE)] == [model.get(slot, ABSENT).used for slot in range(SIZE)]
    assert bool(column) or not model


def check_fitting(column: Column, model: Model) -> None:
    some = np.arange(1, SIZE, 2)
    every = np.ones(SIZE, dtype=np.bool_)
    for slot_set in (SlotSet.dense(every), SlotSet.sparse(np.arange(SIZE)), SlotSet.sparse(some)):
        for amount in (1, 2, 3, 6):
            fitting = [slot for slot in slot_set.slots().tolist() if model.get(slot, ABSENT).fits(amount)]
            assert column.fitting_slots(amount, slot_set).slots().tolist() == fitting


def rows_of(inventories: Any) -> Model:
    slots, *fields = inventories
    return {
        slot: Amounts(*values)
        for slot, *values in zip(slots.tolist(), *(field.tolist() for field in fields), strict=True)
    }


def totals_of(model: Model) -> Totals:
    values = model.values()
    return Totals(
        float(sum(math.floor(amounts.capacity) for amounts in values)),
        float(sum(amounts.used for amounts in values)),
        float(sum(amounts.reserved for amounts in values)),
    )


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@examples(400)
@given(data=st.data())
def test_a_changed_column_equals_one_built_from_scratch(dense: bool, data: st.DataObject) -> None:
    """Slots change within the rows and beyond their end; inventories appear, change, and are removed."""
    fewest = 2 if dense else 0
    model = data.draw(st.dictionaries(st.integers(0, BUILT - 1), some_amounts(), min_size=fewest, max_size=6))
    column = built(model, BUILT, dense=dense)
    versions = [(column, model)]
    for _ in range(data.draw(st.integers(0, 4))):
        slots = st.integers(0, SIZE - 1)
        if data.draw(st.booleans()):
            used = data.draw(st.dictionaries(slots, st.integers(0, 9), max_size=4))
            column = column.with_usage(used)
            model = {
                slot: amounts._replace(used=float(used.get(slot, amounts.used))) for slot, amounts in model.items()
            }
        else:
            changes = data.draw(st.dictionaries(slots, st.just(ABSENT) | some_amounts(), min_size=1, max_size=4))
            column = column.with_inventories(changes)
            model = {slot: amounts for slot, amounts in {**model, **changes}.items() if amounts != ABSENT}
        versions.append((column, model))
    order = data.draw(st.lists(st.integers(0, SIZE - 1), max_size=SIZE))
    for version, expected in versions:
        check(version, expected, order)
        check(built(expected, SIZE, dense=len(expected) * 8 >= SIZE), expected, order)


@pytest.mark.parametrize("huge", [{0: 1e30}, {0: 1e30, 2: -1e30}], ids=["one", "two with a sum of zero"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_sums_are_exact_after_a_huge_capacity_has_changed(dense: bool, huge: dict[int, float]) -> None:
    usual = Amounts(100.0, 0.0, 1, 100, 1, 100, 0, 1.0)
    model = dict.fromkeys(range(4), usual)
    changes = {
        slot: usual._replace(capacity=capacity, allocation_ratio=capacity / 100) for slot, capacity in huge.items()
    }
    column = built(model | changes, SIZE, dense=dense)
    assert column.with_inventories(dict.fromkeys(huge, usual)).totals().capacity == 400


@given(st.dictionaries(st.integers(0, SIZE - 1), some_amounts(), min_size=1, max_size=4))
def test_a_class_that_no_provider_had_gets_inventories(changes: Model) -> None:
    empty = Column.empty()
    assert not empty
    check(empty, {}, [3, 1])
    check(empty.with_inventories(changes), changes, [*changes][::-1])
