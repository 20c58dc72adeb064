"""The memory of a process that has loaded an index."""

from __future__ import annotations

import contextlib
import ctypes
import gc


def release() -> None:
    """Return freed memory to the system, and exclude the present objects from collections of cyclic garbage.

    The arrays of a large cloud are freed after they were written to a file, but glibc keeps most of them for later: 450
    MB for a million hosts, which no later array of this process needs.

    The objects of a process that has loaded its modules and an index are not garbage.  A large response causes several
    collections, which took two thirds of its time.
    """
    gc.collect()
    gc.freeze()
    with contextlib.suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
