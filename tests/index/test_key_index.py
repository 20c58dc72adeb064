"""An index of keys returns all slots with a key, and no other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placement.index.key_index import KeyIndex, key_arrays
from tests.strategies import examples

#: Few keys, so that several slots have the same; at both ends and beyond the signed integers.
KEYS = (0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)


@examples(300)
@given(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 2**31 - 1)), max_size=12))
def test_an_index_yields_the_slots_of_each_key(pairs: list[tuple[int, int]]) -> None:
    keys = np.array([key for key, _ in pairs], dtype=np.uint64)
    slots = np.array([slot for _, slot in pairs], dtype=np.intp)
    index = KeyIndex(**key_arrays(keys, slots))
    for key in KEYS:
        assert [*index.slots_of(key)] == [slot for other, slot in pairs if other == key]
    assert [*index.slots_of(12345)] == []
