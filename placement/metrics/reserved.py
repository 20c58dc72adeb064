"""Files of numbers that have their place on the disk before anything is counted in them."""

from __future__ import annotations

import mmap
import os
from typing import Any

from prometheus_client.mmap_dict import MmapedDict

_AT_FIRST = 2**16
#: What an entry takes besides its key: a length, padding and two numbers.
_ENTRY = 32


class Reserved(MmapedDict):
    """The file of the library with its space reserved; every method raises OSError where there is none left.

    The library makes a file with holes.  Where the disk is full, a number that is written into a hole ends the process
    with SIGBUS.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        if not read_mode:
            _make(filename)
        super().__init__(filename, read_mode)

    def _init_value(self, key: str) -> None:
        file: Any = self._f
        capacity: int = self._capacity
        while self._used + len(key.encode()) + _ENTRY > capacity:
            capacity *= 2
        if capacity > self._capacity:
            os.posix_fallocate(file.fileno(), 0, capacity)
            self._m = mmap.mmap(file.fileno(), capacity)
            self._capacity = capacity
        super()._init_value(key)


def _make(filename: str) -> None:
    """Leave a file without holes, or none."""
    with open(filename, "ab") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            os.posix_fallocate(file.fileno(), 0, max(size, _AT_FIRST))
        except OSError:
            if not size:
                os.unlink(filename)  # who adds up cannot read an empty one
            raise
