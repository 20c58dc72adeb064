"""Uuids are packed alone and in arrays by the same rule, and unpacked to the same text; other texts are not packed."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.index import packed_uuids
from placement.index.texts import Texts
from tests.strategies import examples

ONE = "01234567-89ab-cdef-0123-456789abcdef"
#: Texts that other implementations might store as uuids.
OTHER = (
    ONE.upper(),
    ONE.replace("a", "A"),
    ONE.replace("-", ""),
    f"{{{ONE}}}",
    f"urn:uuid:{ONE}",
    ONE[:-1],
    ONE + "0",
    ONE + "\n",
    "\n" + ONE[:-1],
    ONE[:-1] + "g",
    ONE[:-1] + "/",
    ONE[:-1] + ":",
    ONE[:-1] + "`",
    ONE.replace("-", "0"),
    ONE.replace("-", "_"),
    ONE[1:9] + ONE[0] + ONE[9:],
    ONE[:-1] + "٣",
    ONE[:-2] + "é",
    "-" * 36,
    "",
)

uuids = st.uuids().map(str) | st.integers(0, 3).map(lambda number: str(UUID(int=number << 63)))
almost = st.builds(
    lambda text, place, character: text[:place] + character + text[place + 1 :],
    *(uuids, st.integers(0, 35), st.characters(codec="utf-8")),
)
texts = st.lists(uuids | almost | st.sampled_from(OTHER) | st.text(max_size=40), max_size=6)


@examples(500)
@given(texts)
def test_texts_are_packed_alone_as_in_an_array(values: list[str]) -> None:
    packed, is_packed = packed_uuids.pack(Texts.of(values))
    alone = [packed_uuids.pack_one(text) for text in values]
    assert is_packed.tolist() == [halves is not None for halves in alone]
    assert [*map(tuple, packed.tolist())] == [halves or (0, 0) for halves in alone]


@examples(300)
@given(st.lists(uuids, max_size=6))
def test_packed_uuids_are_unpacked_to_the_same_text(values: list[str]) -> None:
    packed, is_packed = packed_uuids.pack(Texts.of(values))
    assert is_packed.all()
    assert packed.shape == (len(values), 2)
    assert packed_uuids.unpack(packed) == values
    array = packed_uuids.unpack_array(packed)
    assert array.select(np.arange(len(values))) == values
    assert [packed_uuids.unpack_one(*halves) for halves in packed.tolist()] == values
    assert packed.tolist() == [[UUID(text).int >> 64, UUID(text).int % 2**64] for text in values]


@examples(300)
@given(st.lists(uuids, max_size=6))
def test_the_hash_of_a_uuid_is_the_same_alone_and_in_an_array(values: list[str]) -> None:
    packed, _ = packed_uuids.pack(Texts.of(values))
    assert packed_uuids.hashes(packed).tolist() == [packed_uuids.hash_one(*halves) for halves in packed.tolist()]


@pytest.mark.parametrize("text", OTHER, ids=ascii)
def test_only_uuids_in_lower_case_with_dashes_are_packed(text: str) -> None:
    """Otherwise the text that the database stores would be lost."""
    assert packed_uuids.pack_one(text) is None
    packed, is_packed = packed_uuids.pack(Texts.of([ONE, text, ONE]))
    assert is_packed.tolist() == [True, False, True]
    assert packed_uuids.unpack(packed[is_packed]) == [ONE, ONE]


def test_uuids_that_share_a_half_have_different_hashes() -> None:
    high = [str(UUID(int=number << 64 | 7)) for number in range(1000)]
    low = [str(UUID(int=5000 << 64 | number)) for number in range(1000)]
    packed, _ = packed_uuids.pack(Texts.of(high + low))
    assert len({*packed_uuids.hashes(packed).tolist()}) == 2000
