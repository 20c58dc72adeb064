"""Metric files whose disk space is allocated before they are written."""

from __future__ import annotations

import mmap
import os
from typing import Any

from prometheus_client.mmap_dict import MmapedDict

_INITIAL_SIZE = 2**16
#: Bytes of an entry besides its key: a length, padding and two numbers.
_ENTRY_OVERHEAD = 32


class AllocatedFile(MmapedDict):
    """The library's memory-mapped file with preallocated space; every method raises OSError if the disk is full.

    The library itself creates a sparse file.  On a full disk, writing to a hole of a mapped file would kill the process
    with SIGBUS.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        if not read_mode:
            _preallocate(filename)
        super().__init__(filename, read_mode)

    def _init_value(self, key: str) -> None:
        file: Any = self._f
        capacity: int = self._capacity
        while self._used + len(key.encode()) + _ENTRY_OVERHEAD > capacity:
            capacity *= 2
        if capacity > self._capacity:
            os.posix_fallocate(file.fileno(), 0, capacity)
            self._m = mmap.mmap(file.fileno(), capacity)
            self._capacity = capacity
        super()._init_value(key)


def _preallocate(filename: str) -> None:
    """Create a file without holes, or raise OSError and leave no file if the disk is full."""
    with open(filename, "ab") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            os.posix_fallocate(file.fileno(), 0, max(size, _INITIAL_SIZE))
        except OSError:
            if not size:
                os.unlink(filename)  # the exporter cannot read an empty file
            raise
