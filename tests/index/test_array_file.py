"""A file of arrays is read as it was written, or not at all."""

from __future__ import annotations

import gc
import os
import random
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from placement.index import array_file
from placement.index.array_file import UnusableFileError
from tests.strategies import examples

KINDS = (np.bool_, np.uint8, np.int32, np.int64, np.uint64, np.float64)
#: Of every type, with two dimensions, without elements, and not contiguous.
ARRAYS: dict[str, Any] = {
    "ids": np.arange(1, 6),
    "part/uuids": np.arange(6, dtype=np.uint64).reshape(3, 2),
    "part/names": np.frombuffer(b"abc", dtype=np.uint8),
    "none": np.empty(0, dtype=np.int32),
    "no masks": np.empty((0, 7), dtype=np.bool_),
    "every second": np.arange(8, dtype=np.float64)[::2],
    "mask": np.array([True, False, True]),
}
FACTS: dict[str, Any] = {"name": "é", "number": 2**40, "pairs": [[1, 2]], "none": None}


def as_lists(arrays: Any) -> dict[str, Any]:
    return {name: (array.dtype.str, array.shape, array.tolist()) for name, array in arrays.items()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    array_file.write(tmp_path / "arrays", ARRAYS, FACTS)
    return tmp_path / "arrays"


def test_a_file_contains_its_arrays_and_facts(path: Path) -> None:
    arrays, facts = array_file.read(path)
    assert as_lists(arrays) == as_lists(ARRAYS)
    assert facts == FACTS


any_array = st.sampled_from(KINDS).flatmap(
    lambda kind: arrays_of.arrays(kind, arrays_of.array_shapes(max_dims=2, min_side=0, max_side=9))
)


@examples(200)
@given(arrays=st.dictionaries(st.text(max_size=5), any_array, max_size=4))
def test_any_arrays_are_read_as_they_were_written(tmp_path_factory: Any, arrays: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("any") / "arrays"
    array_file.write(path, arrays, {})
    read, _ = array_file.read(path)
    assert {name: (array.dtype, array.shape, array.tobytes()) for name, array in read.items()} == {
        name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()
    }
    assert all(array.__array_interface__["data"][0] % 64 == 0 for array in read.values() if array.size), "aligned"


def test_arrays_that_were_read_cannot_be_changed(path: Path) -> None:
    for array in array_file.read(path)[0].values():
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_only_the_user_of_the_process_may_read_a_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        array_file.write(tmp_path / "arrays", ARRAYS, FACTS)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "arrays").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["file", "symlink", "dangling symlink"])
def test_nothing_that_exists_is_overwritten(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "arrays", tmp_path / "other"
    if kind != "dangling symlink":
        other.write_bytes(b"other")
    path.symlink_to(other) if "symlink" in kind else path.hardlink_to(other)
    with pytest.raises(FileExistsError):
        array_file.write(path, ARRAYS, FACTS)
    assert not other.exists() if kind == "dangling symlink" else other.read_bytes() == b"other"


def test_arrays_remain_valid_when_their_file_is_replaced_and_deleted(path: Path) -> None:
    arrays, _ = array_file.read(path)
    new = path.with_name("new")
    array_file.write(new, {name: np.zeros_like(array) for name, array in ARRAYS.items()}, {})
    new.replace(path)
    assert as_lists(arrays) == as_lists(ARRAYS)
    path.unlink()
    assert as_lists(arrays) == as_lists(ARRAYS)


def test_no_descriptor_remains_open_without_arrays(path: Path) -> None:
    def descriptors() -> int:
        links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
        return sum(1 for link in links if os.path.lexists(link) and str(path.parent) in os.readlink(link))

    kept = [array_file.read(path) for _ in range(3)]
    del kept
    gc.collect()
    assert descriptors() == 0
    intact = path.read_bytes()
    for content in (b"short", b"x" * 100, intact[:-1], intact[:-1] + b"x"):
        path.write_bytes(content)
        with pytest.raises(UnusableFileError):
            array_file.read(path)
    gc.collect()
    assert descriptors() == 0


# --- damage ---


def test_one_flipped_bit_anywhere_is_noticed_or_is_between_the_arrays(path: Path) -> None:
    intact = path.read_bytes()
    unnoticed = 0
    for position in range(len(intact)):
        content = bytearray(intact)
        content[position] ^= 1 << position % 8
        path.write_bytes(content)
        try:
            arrays, facts = array_file.read(path)
        except UnusableFileError:
            continue
        assert as_lists(arrays) == as_lists(ARRAYS)
        assert facts == FACTS
        unnoticed += 1
        assert intact[position] == 0, "it fills the space up to the next array"
    assert unnoticed < 64 * (len(ARRAYS) + 1)


@pytest.mark.parametrize("bit", range(8))
def test_every_bit_of_the_head_and_of_the_header_counts(path: Path, bit: int) -> None:
    intact = path.read_bytes()
    header_end = 20 + int.from_bytes(intact[8:16], "little")
    for position in range(header_end):
        content = bytearray(intact)
        content[position] ^= 1 << bit
        path.write_bytes(content)
        with pytest.raises(UnusableFileError):
            array_file.read(path)


def test_a_file_truncated_anywhere_is_unusable(path: Path) -> None:
    intact = path.read_bytes()
    for length in range(len(intact)):
        path.write_bytes(intact[:length])
        with pytest.raises(UnusableFileError):
            array_file.read(path)


def test_random_bytes_are_unusable(path: Path) -> None:
    chance = random.Random(1)
    head = path.read_bytes()[:8]
    for length in (1, 7, 8, 19, 20, 21, 100, 10_000):
        for beginning in (b"", head):
            path.write_bytes((beginning + chance.randbytes(length))[: max(length, len(beginning))])
            with pytest.raises(UnusableFileError):
                array_file.read(path)


def test_a_missing_file_is_told_from_an_unusable_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        array_file.read(tmp_path / "arrays")


@pytest.mark.parametrize("kind", ["symlink", "directory"])
def test_only_a_file_is_read(path: Path, kind: str) -> None:
    """A link could name any file that the user of the process can read."""
    other = path.with_name("other")
    path.symlink_to(path.rename(other)) if kind == "symlink" else (path.unlink(), path.mkdir())
    with pytest.raises((OSError, UnusableFileError)):
        array_file.read(path)
