"""An array of texts behaves like a list of strings, whatever characters they have and however it was made."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placement.index import texts
from placement.index.texts import Texts, hash_one
from tests.strategies import examples

#: Any characters, of one to four bytes, NUL included; also texts that differ only in trailing characters.
some_texts = st.lists(st.text(max_size=6) | st.text("a\0é😀", max_size=3), max_size=8)


def strings(array: Texts) -> list[str]:
    """Return the texts by the method that reads one."""
    assert array.offsets[0] == 0
    assert array.offsets[-1] == len(array.data)
    return [array[number] for number in range(len(array))]


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.intp)


@examples(300)
@given(some_texts)
def test_an_array_contains_the_texts_it_was_made_of(values: list[str]) -> None:
    array = Texts.of(values)
    assert strings(array) == values
    assert array.select(np.arange(len(values))) == values


@examples(300)
@given(st.lists(some_texts, min_size=1, max_size=4))
def test_concatenated_arrays_contain_the_texts_of_all(parts: list[list[str]]) -> None:
    assert strings(Texts.concatenate([Texts.of(part) for part in parts])) == [*itertools.chain(*parts)]


@examples(300)
@given(some_texts, st.data(), st.integers(1, 3))
def test_texts_are_selected_and_taken_in_any_order(values: list[str], data: st.DataObject, block: int) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=9)) if values else []
    array = Texts.of(values)
    assert array.select(numbers(*chosen)) == [values[number] for number in chosen]
    with mock.patch.object(texts, "_BLOCK", block):
        assert strings(array.take(numbers(*chosen))) == [values[number] for number in chosen]
    assert strings(array) == values, "the array has not changed"


@examples(300)
@given(some_texts, st.integers(1, 3))
def test_the_hash_of_a_text_is_the_same_in_any_array_and_alone(values: list[str], block: int) -> None:
    with mock.patch.object(texts, "_BLOCK", block):
        hashes = Texts.of(values).hashes()
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == [*map(hash_one, values)]


def test_similar_texts_have_different_hashes() -> None:
    similar = [f"host-{number}.example" for number in range(10_000)]
    similar += ["\0" * length for length in range(50)] + ["ab", "ba", "a\0b", "ab\0"]
    assert len({*Texts.of(similar).hashes().tolist()}) == len(similar)
