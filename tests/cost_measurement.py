"""The cost of some work, measured in a separate process with limited memory."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

_MEBIBYTE = 2**20


class Cost(NamedTuple):
    """A cost, with the result of the work."""

    #: Seconds of processor time, which other processes do not affect.
    seconds: float
    #: The peak of memory above the level before, in mebibytes.
    mebibytes: float
    result: Any


def cost(work: Callable[[], Any], at_most: int = 1024) -> Cost:
    """Measure the cost of ``work()``, whose result must be small.

    Args:
        at_most: The memory, in mebibytes, that the work may allocate.

    Raises:
        RuntimeError: The work failed, or needed more memory.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # eventlet, which another test may have imported, and Python warn about forks of a process with threads.
        # The child waits for no thread, and exits.
        warnings.filterwarnings("ignore", "(?s).*fork", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, at_most, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    if not content:
        raise RuntimeError("the process ended without a result")
    outcome = pickle.loads(content)  # of our own child process
    if isinstance(outcome, str):
        raise RuntimeError(outcome)
    return Cost(*outcome)


def _work(work: Callable[[], Any], at_most: int, writing: int) -> None:
    """Run the function, send its costs, and exit."""
    try:
        # Memory freed earlier but kept by the allocator would hide the memory of the work.
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        before = _status("VmRSS")
        limit = int((_status("VmSize") + at_most) * _MEBIBYTE)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        began = time.process_time()
        result = work()
        seconds = time.process_time() - began
        outcome: Any = (seconds, _status("VmHWM") - before, result)
    except BaseException:
        outcome = traceback.format_exc()[-4000:]
    try:
        with open(writing, "wb") as telling:
            telling.write(pickle.dumps(outcome))
        sys.stdout.flush()
    finally:
        os._exit(0)


def _status(name: str) -> float:
    """Return a figure about the memory of this process, in mebibytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))
