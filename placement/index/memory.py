"""The memory of a process that has loaded an index."""

from __future__ import annotations

import contextlib
import ctypes
import gc

import numpy as np

#: Bytes of the largest array whose memory is kept for later arrays: a mask of four million providers.  Each thread may
#: keep twice as much.
_LARGEST_KEPT = 4 * 2**20


def release() -> None:
    """Return freed memory to the system, and exclude the present objects from collections of cyclic garbage.

    The objects that exist after a load are not garbage, but each collection scans them: they took two thirds of the
    time of a large response.
    """
    gc.collect()
    gc.freeze()
    trim()
    _keep_temporary_arrays()


def trim() -> None:
    """Return freed memory to the system.

    The arrays of a large cloud are freed once they are written to a file, but glibc keeps most of them for later: 450
    MB for a million hosts, which no later array of this process needs.
    """
    with contextlib.suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _keep_temporary_arrays() -> None:
    """Let later searches reuse the memory of temporary arrays.

    By default glibc gets new memory for each array of more than 128 KB, and the kernel clears its pages.  The limit
    rises to the size of the largest array freed so far (dynamic threshold, mallopt(3)).  A process that has only mapped
    a file has freed none: a search of 900,000 providers takes 8 ms instead of 4.
    """
    np.empty(_LARGEST_KEPT, np.uint8)
