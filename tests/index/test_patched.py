"""A patched array behaves like a list, and does not change when it is changed again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placement.index.patched import PatchedArray
from tests.strategies import examples

#: More than the longest array, so that elements beyond its end change, too.
END = 9

elements = st.integers(-(2**63), 2**63 - 1)
some_changes = st.dictionaries(st.integers(0, END - 1), elements, max_size=5)


def check(patched: PatchedArray, model: list[int], slots: list[int]) -> None:
    assert patched[np.array(slots, dtype=np.intp)].tolist() == [model[slot] for slot in slots]
    assert [patched.item(slot) for slot in range(END)] == model
    for size in range(END + 1):
        assert patched.array(size).tolist() == model[:size]


@examples(300)
@given(
    st.lists(elements, max_size=END - 3),
    st.lists(some_changes, max_size=3),
    st.lists(st.integers(0, END - 1), max_size=6),
)
def test_a_patched_array_behaves_like_a_list(first: list[int], patches: list[dict[int, int]], slots: list[int]) -> None:
    patched = PatchedArray(np.array(first, dtype=np.int64))
    model = first + [0] * (END - len(first))
    versions = [(patched, model)]
    for changes in patches:
        patched = patched.with_changes(changes)
        model = [changes.get(slot, number) for slot, number in enumerate(model)]
        versions.append((patched, model))
    for version, expected in versions:
        check(version, expected, slots)
    assert patched.changes == len(set().union(*patches))
