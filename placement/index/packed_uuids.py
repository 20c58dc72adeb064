"""Uuids as two numbers of 64 bits."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from placement.index.texts import Texts

#: One row of two numbers, the high and the low half, for each uuid.
PackedUuids = npt.NDArray[np.uint64]

_CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_FACTOR = 0x9E3779B97F4A7C15
_LENGTH = 36
_DASHES = [8, 13, 18, 23]
_DIGITS = [position for position in range(_LENGTH) if position not in _DASHES]
_CHARACTERS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
#: The number of each hexadecimal digit in lower case; 255 for other characters.
_NUMBERS = np.full(256, 255, dtype=np.uint8)
_NUMBERS[_CHARACTERS] = np.arange(16)


def pack(texts: Texts) -> tuple[PackedUuids, npt.NDArray[np.bool_]]:
    """Return the uuids as numbers, and a mask of the texts that are uuids in lower case with dashes.

    The numbers of other texts are 0.
    """
    packed = np.zeros((len(texts), 2), dtype=np.uint64)
    is_packed = np.diff(texts.offsets) == _LENGTH
    if is_packed.all():
        characters = texts.data.reshape(-1, _LENGTH)
    else:
        characters = texts.data[texts.offsets[:-1][is_packed][:, None] + np.arange(_LENGTH)]
    digits = _NUMBERS[characters[:, _DIGITS]]
    is_uuid = (digits < 16).all(axis=1) & (characters[:, _DASHES] == ord("-")).all(axis=1)
    is_packed[is_packed] = is_uuid
    digits = digits[is_uuid]
    packed[is_packed] = (digits[:, ::2] << 4 | digits[:, 1::2]).view(">u8")
    return packed, is_packed


def unpack(packed: PackedUuids) -> list[str]:
    """Return the uuids as texts."""
    text = unpack_array(packed).data.tobytes().decode("ascii")
    return [text[start : start + _LENGTH] for start in range(0, len(text), _LENGTH)]


def unpack_array(packed: PackedUuids) -> Texts:
    """Return the uuids as an array of texts."""
    pairs = packed.astype(">u8").view(np.uint8)
    digits = np.empty((len(packed), 32), dtype=np.uint8)
    digits[:, ::2], digits[:, 1::2] = pairs >> 4, pairs & 15
    characters = np.full((len(packed), _LENGTH), ord("-"), dtype=np.uint8)
    characters[:, _DIGITS] = _CHARACTERS[digits]
    return Texts(characters.ravel(), np.arange(len(packed) + 1) * _LENGTH)


def pack_one(text: str) -> tuple[int, int] | None:
    """Return the halves of one uuid, or None if ``pack`` would not pack it."""
    if _CANONICAL.fullmatch(text) is None:
        return None
    return divmod(int(text.replace("-", ""), 16), 2**64)


def unpack_one(high: int, low: int) -> str:
    """Return one uuid as a text."""
    digits = f"{high << 64 | low:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def hashes(packed: PackedUuids) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each uuid, computed from both halves: sequential uuids have one half in common."""
    return packed[:, 0] * np.uint64(_FACTOR) + packed[:, 1]


def hash_one(high: int, low: int) -> int:
    """Return the hash of one uuid."""
    return (high * _FACTOR + low) % 2**64
