"""A set of slots behaves like a set of numbers, in both forms."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.index.forest import Forest, forest_arrays
from placement.index.slots import EMPTY, SlotSet, intersection

SIZE = 40

numbers = st.frozensets(st.integers(0, SIZE - 1))


def array(members: frozenset[int]) -> Any:
    return np.array(sorted(members), dtype=np.intp)


def forms(members: frozenset[int]) -> list[SlotSet]:
    """Return the set in both forms, and in its smaller form."""
    mask = np.zeros(SIZE, dtype=np.bool_)
    mask[array(members)] = True
    return [SlotSet.sparse(array(members)), SlotSet.dense(mask), SlotSet.from_slots(array(members), SIZE)]


def check(slots: SlotSet, expected: frozenset[int]) -> None:
    """Compare the set with the expected members, by every way to read it."""
    assert slots.slots().tolist() == sorted(expected)
    assert np.flatnonzero(slots.mask(SIZE)).tolist() == sorted(expected)
    assert bool(slots) == bool(expected)
    assert slots.count == len(slots) == len(expected)
    assert bool(slots) == bool(expected), "even when the count is known"


@pytest.mark.parametrize("operation", [operator.and_, operator.or_, operator.sub])
@given(first=numbers, second=numbers)
def test_operators_behave_like_set_operators(operation: Callable[[Any, Any], Any], first: Any, second: Any) -> None:
    for first_set in forms(first):
        for second_set in forms(second):
            check(operation(first_set, second_set), operation(first, second))
            check(first_set, first)
            check(second_set, second)


@given(st.lists(numbers, max_size=4))
def test_unions_and_intersections_have_the_members_of_set_operations(sets: list[frozenset[int]]) -> None:
    for form in range(3):
        sets_in_form = [forms(members)[form] for members in sets]
        check(SlotSet.union(sets_in_form, SIZE), frozenset().union(*sets))
        if sets:
            check(intersection(sets_in_form), frozenset.intersection(*sets))


@given(numbers)
def test_the_compact_form_is_the_smaller_one(members: frozenset[int]) -> None:
    for slots in forms(members):
        compact = slots.compact()
        check(compact, members)
        assert compact.nbytes <= slots.nbytes
        assert compact.nbytes <= max(8 * len(members), 8) or not compact.is_sparse
    assert SlotSet.from_slots(array(members), SIZE).nbytes == min(8 * len(members), SIZE)


@given(numbers, numbers, st.integers(SIZE, 3 * SIZE))
def test_an_edited_set_has_the_new_members_and_size(before: frozenset[int], after: frozenset[int], size: int) -> None:
    for slots in forms(before):
        edited = slots.with_changes(after - before, before - after, size)
        assert edited.slots().tolist() == sorted(after)
        assert edited.is_sparse or edited.size == size
        check(slots, before)


@given(numbers)
def test_a_set_for_more_slots_has_the_same_members(members: frozenset[int]) -> None:
    for slots in forms(members):
        resized = slots.resize(2 * SIZE)
        assert resized.slots().tolist() == sorted(members)
        assert np.flatnonzero(slots.mask(2 * SIZE)).tolist() == sorted(members)
        assert resized.is_sparse or resized.size == 2 * SIZE


def test_the_empty_set_can_be_combined() -> None:
    for slots in forms(frozenset({3, 5})):
        check(slots & EMPTY, frozenset())
        check(EMPTY & slots, frozenset())
        check(EMPTY - slots, frozenset())
        check(slots - EMPTY, frozenset({3, 5}))
        check(slots | EMPTY, frozenset({3, 5}))


# --- trees ---


def forest_of(roots: list[int], size: int) -> Forest:
    """Return a forest in which slot n has the root ``roots[n]``."""
    return Forest(forest_arrays(np.array(roots, dtype=np.intp), size), {})


@st.composite
def forests(draw: st.DrawFn) -> tuple[Forest, list[int]]:
    """Draw a forest with free slots, and return it with the root of each slot."""
    tops = draw(st.lists(st.integers(0, 5), min_size=1, max_size=12))
    roots: list[int] = []
    for slot, top in enumerate(tops):
        roots.append(roots[top] if top < slot and roots[top] == top else slot)
    return forest_of(roots, SIZE), roots


@given(st.data(), forests())
def test_a_forest_returns_the_roots_and_the_trees_of_a_set(
    data: st.DataObject, forest_and_roots: tuple[Forest, list[int]]
) -> None:
    forest, roots = forest_and_roots
    members = data.draw(st.frozensets(st.integers(0, len(roots) - 1)))
    tops = frozenset(roots[slot] for slot in members)
    for slots in forms(members):
        check(forest.roots_of(slots), tops)
    for slots in forms(tops):
        check(forest.trees_of(slots), frozenset(slot for slot, root in enumerate(roots) if root in tops))
    check(forest.all_roots, frozenset(roots))


@given(st.data(), forests())
def test_a_forest_returns_the_trees_of_a_few_roots_among_many_slots(
    data: st.DataObject, forest_and_roots: tuple[Forest, list[int]]
) -> None:
    roots = forest_and_roots[1]
    forest = forest_of(roots, 1000)
    tops = data.draw(st.frozensets(st.sampled_from(roots)))
    members = forest.trees_of(SlotSet.sparse(array(tops)))
    assert members.slots().tolist() == [slot for slot, root in enumerate(roots) if root in tops]


def test_random_samples_contain_about_the_requested_number_of_roots() -> None:
    """Every third provider is a root."""
    forest = forest_of([slot - slot % 3 for slot in range(30_000)], 40_000)
    generator = np.random.default_rng(1)
    samples = [forest.sample(100, generator).slots().tolist() for _ in range(10)]
    for sample in samples:
        assert 60 < len(sample) < 140
        assert all(slot % 3 == 0 and slot < 30_000 for slot in sample)
    assert len(set().union(*samples)) > 900
