"""Arrays of texts, and their hashes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

#: The factor of the polynomial hash: odd, so that no power of it is 0 modulo 2**64.
_FACTOR = 0x9E3779B97F4A7C15
#: Texts hashed or copied at once.
_BLOCK = 2**16


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in UTF-8: text n is ``data[offsets[n]:offsets[n + 1]]``."""

    data: npt.NDArray[np.uint8]
    #: One more than the number of texts; the first is 0.
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Return the texts as an array."""
        encoded = [text.encode() for text in texts]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    @classmethod
    def concatenate(cls, parts: Sequence[Texts]) -> Texts:
        """Return the texts of all parts; there must be at least one part."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(np.concatenate([part.data for part in parts]), np.append(0, np.cumsum(lengths)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> str:
        start, end = self.offsets[number : number + 2].tolist()
        return self.data[start:end].tobytes().decode()

    def select(self, numbers: npt.NDArray[np.intp]) -> list[str]:
        """Return the texts with these numbers."""
        data = self.data
        bounds = zip(self.offsets[numbers].tolist(), self.offsets[numbers + 1].tolist(), strict=True)
        return [data[start:end].tobytes().decode() for start, end in bounds]

    def take(self, numbers: npt.NDArray[np.intp]) -> Texts:
        """Return the texts with these numbers as an array."""
        lengths = np.diff(self.offsets)[numbers]
        offsets = np.append(0, np.cumsum(lengths))
        data = np.empty(offsets[-1], dtype=np.uint8)
        for first in range(0, len(numbers), _BLOCK):
            block = slice(first, first + _BLOCK)
            start, end = offsets[first], offsets[min(first + _BLOCK, len(numbers))]
            shift = np.repeat(self.offsets[numbers[block]] - offsets[:-1][block], lengths[block])
            data[start:end] = self.data[np.arange(start, end) + shift]
        return Texts(data, offsets)

    def hashes(self) -> Hashes:
        """Return a hash of each text: a polynomial modulo 2**64 whose coefficients are its bytes plus one."""
        lengths = np.diff(self.offsets)
        weights = np.cumprod(np.full(int(lengths.max(initial=0)), _FACTOR, dtype=np.uint64))
        hashes = np.zeros(len(self), dtype=np.uint64)
        for first in range(0, len(self), _BLOCK):
            offsets = self.offsets[first : first + _BLOCK + 1]
            position = np.arange(offsets[0], offsets[-1]) - np.repeat(offsets[:-1], lengths[first : first + _BLOCK])
            terms = (self.data[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1)) * weights[position]
            sums = np.append(np.uint64(0), np.cumsum(terms))
            ends = offsets - offsets[0]
            hashes[first : first + _BLOCK] = sums[ends[1:]] - sums[ends[:-1]]
        return hashes


def hash_one(text: str) -> int:
    """Return the hash of one text."""
    value = 0
    for byte in reversed(text.encode()):
        value = (value + byte + 1) * _FACTOR % 2**64
    return value
