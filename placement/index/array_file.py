"""A file of arrays, which processes map into their memory.

The file begins with a head of fixed size: a magic number, the length and the checksum of the header.  The header is
JSON: the caller's facts, and the type, shape, offset and checksum of each array.  The arrays follow.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from placement.index.arrays import Arrays

_HEAD = struct.Struct("<8sQI")
_MAGIC = b"PLACEIDX"
#: Arrays begin at multiples of this number of bytes: the size of a cache line.
_ALIGNMENT = 64


class UnusableFileError(Exception):
    """A file that cannot be used; the argument says why."""


def write(path: Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Write a new file, which only the user of the process can read.

    Args:
        path: The file; it must not exist.
        arrays: The arrays.
        facts: Facts about the arrays, as JSON.

    Raises:
        OSError: The file exists, or cannot be written; it may have been written in part.
    """
    descriptions, offset = {}, 0
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in contiguous.items():
        descriptions[name] = (array.dtype.str, array.shape, offset, zlib.crc32(_bytes(array)))
        offset = _align(offset + array.nbytes)
    header = orjson.dumps({"facts": facts, "arrays": descriptions})
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(_HEAD.pack(_MAGIC, len(header), zlib.crc32(header)) + header)
        start = _align(_HEAD.size + len(header))
        for array, (*_, array_offset, _) in zip(contiguous.values(), descriptions.values(), strict=True):
            file.write(b"\0" * (start + array_offset - file.tell()))
            file.write(_bytes(array))


def read(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Map a file into memory, and return its arrays, which cannot be changed, and its facts.

    The arrays remain valid if the file is replaced or deleted.

    Raises:
        FileNotFoundError: The file does not exist.
        OSError: The file cannot be read.
        UnusableFileError: The file was not written by ``write``, or has changed since.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_size < _HEAD.size:
            raise UnusableFileError("it is too short")
        content = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
    magic, length, checksum = _HEAD.unpack_from(content)
    if magic != _MAGIC:
        raise UnusableFileError("it is not an index")
    header = content[_HEAD.size : _HEAD.size + length]
    if zlib.crc32(header) != checksum:
        raise UnusableFileError("its header is damaged")
    document = orjson.loads(header)
    start = _align(_HEAD.size + length)
    arrays = {}
    for name, (kind, shape, offset, array_checksum) in document["arrays"].items():
        try:
            array: np.ndarray[Any, Any] = np.ndarray(shape, np.dtype(kind), buffer=content, offset=start + offset)
        except TypeError:  # the buffer is too small
            raise UnusableFileError("it is too short") from None
        if zlib.crc32(_bytes(array)) != array_checksum:
            raise UnusableFileError(f"its array {name} is damaged")
        arrays[name] = array
    return arrays, document["facts"]


def _bytes(array: np.ndarray[Any, Any]) -> memoryview | bytes:
    return array.data.cast("B") if array.size else b""


def _align(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
