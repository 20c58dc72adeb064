"""Each slot has its own set of members, however many slots share a set."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.index import member_sets
from placement.index.member_sets import MemberSets, intern_sets
from tests.strategies import examples

#: Factors of hashes: those in use, and others with which all sets, or many, have the same hash.
FACTORS = {"in use": member_sets._FACTORS, "all collide": (0, 0), "many collide": (1, 1 << 33)}

slots_sets = st.lists(st.frozensets(st.integers(0, 4), max_size=4) | st.just(frozenset({2**40})), max_size=8)


def pairs_of(sets: list[frozenset[int]]) -> np.ndarray:
    pairs = [(slot, member) for slot, members in enumerate(sets) for member in sorted(members)]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
@examples(300)
@given(sets=slots_sets, data=st.data())
def test_every_slot_has_its_set(factors: tuple[int, int], sets: list[frozenset[int]], data: st.DataObject) -> None:
    with mock.patch.object(member_sets, "_FACTORS", factors):
        stored = MemberSets(intern_sets(pairs_of(sets), len(sets)), tuple)
    expected = [tuple(sorted(members)) for members in sets]
    assert [stored.of_slot(slot) for slot in range(len(sets))] == expected
    slots = data.draw(st.lists(st.integers(0, len(sets) - 1), max_size=8)) if sets else []
    assert stored.of_slots(np.array(slots, dtype=np.intp)) == [expected[slot] for slot in slots]
    assert stored.pairs().tolist() == pairs_of(sets).tolist()


def test_equal_sets_are_stored_once() -> None:
    sets = [frozenset({1, 2}), frozenset(), frozenset({1, 2}), frozenset({2}), frozenset()]
    arrays = intern_sets(pairs_of(sets), len(sets))
    assert arrays["members"].size == 3
    assert len(arrays["offsets"]) == 4


def test_more_sets_than_are_kept_as_objects_can_be_read() -> None:
    sets = [frozenset({number}) for number in range(5)]
    with mock.patch.object(member_sets, "_MAX_CACHED", 2):
        stored = MemberSets(intern_sets(pairs_of(sets), len(sets)), frozenset)
        for _ in range(2):
            assert stored.of_slots(np.arange(5)) == sets
        assert len(stored._cached) == 2
