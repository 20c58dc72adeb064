"""A bulkhead: a limit on the threads of a process that use the database at a time.

One thread is kept for requests that need no database, such as health checks, so that a database that hangs does not
stop the whole process (the bulkhead pattern: M. Nygard, Release It!).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from placement import errors

#: Seconds without an answer of the database after which a thread counts as stalled.
STALL_TIMEOUT = 5.0

_current = threading.local()


def note_progress() -> None:
    """Note that the database has answered this thread, so that work of many statements does not count as stalled."""
    bulkhead: Bulkhead | None = getattr(_current, "bulkhead", None)
    if bulkhead is not None:
        bulkhead.note_progress()


class Bulkhead:
    """Admits a limited number of threads at a time; reentrant."""

    def __init__(self, threads: int | None = None) -> None:
        """Admit ``threads`` threads at a time; None is no limit."""
        self._threads = threads
        self._released = threading.Condition()
        #: For each admitted thread, when it was admitted or last answered by the database.
        self._admitted: dict[int, float] = {}

    @contextlib.contextmanager
    def admit(self) -> Iterator[None]:
        """Wait for admission and run the block; raises DatabaseBusy if all admitted threads are stalled."""
        thread = threading.get_ident()
        if self._threads is None or thread in self._admitted:
            yield
            return
        self._wait(thread, self._threads)
        _current.bulkhead = self
        try:
            yield
        finally:
            _current.bulkhead = None
            with self._released:
                del self._admitted[thread]
                self._released.notify()

    def note_progress(self) -> None:
        """Note that the database has answered this thread, which is admitted."""
        with self._released:
            self._admitted[threading.get_ident()] = time.monotonic()

    def _wait(self, thread: int, threads: int) -> None:
        with self._released:
            while len(self._admitted) >= threads:
                timeout = max(self._admitted.values()) + STALL_TIMEOUT - time.monotonic()
                if timeout <= 0:
                    raise errors.DatabaseBusy()
                self._released.wait(timeout)
            self._admitted[thread] = time.monotonic()
