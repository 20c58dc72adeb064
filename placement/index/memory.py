"""The memory of this process."""

from __future__ import annotations

import contextlib
import ctypes


def release() -> None:
    """Return freed memory to the system.

    The arrays of a large cloud are freed after they were written to a file, but glibc keeps most of them for later: 450
    MB for a million hosts, which no later array of this process needs.
    """
    with contextlib.suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
