"""A bulkhead: a limit on the threads of a process that use the database at the same time.

One thread stays free for requests that need no database, such as health checks, so that a hanging database does not
block the whole process (the bulkhead pattern: M. Nygard, Release It!).
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from placement import errors

#: Seconds without an answer from the database after which a thread counts as stalled.
STALL_TIMEOUT = 5.0

_current = threading.local()


def note_progress() -> None:
    """Record that the database has answered this thread, so that a series of statements does not count as stalled."""
    bulkhead: Bulkhead | None = getattr(_current, "bulkhead", None)
    if bulkhead is not None:
        bulkhead.note_progress()


class Bulkhead:
    """A limit on the threads that use the database at the same time; reentrant."""

    def __init__(self, threads: int | None = None, check_interval: float = 0.5) -> None:
        """Admit ``threads`` threads at a time; None for no limit.

        Args:
            check_interval: Seconds between two checks for stalled threads, by each waiting thread.
        """
        self._threads = threads
        #: A context manager that admits the thread, or raises DatabaseBusy if all admitted threads are stalled.
        self.admit: Callable[[], AbstractContextManager[None]] = (
            functools.partial(self._admit, threads) if threads else contextlib.nullcontext
        )
        self._check_interval = check_interval
        self._released = threading.Condition()
        #: The time at which each admitted thread was admitted or last answered by the database.
        self._admitted: dict[int, float] = {}
        #: The threads that wait for the work of admitted threads, in order of arrival.
        self._followers: dict[int, None] = {}

    @contextlib.contextmanager
    def _admit(self, threads: int) -> Iterator[None]:
        thread = threading.get_ident()
        if thread in self._admitted:
            yield
            return
        self._wait(thread, threads)
        _current.bulkhead = self
        try:
            yield
        finally:
            _current.bulkhead = None
            with self._released:
                del self._admitted[thread]
                self._released.notify()

    def wait_for(self, done: threading.Event) -> bool:
        """Wait for the work of an admitted thread, and return whether it is done.

        Waiting needs no admission.  But if no thread is left for other requests and all admitted threads are stalled,
        the waiting threads that arrived last give up.
        """
        thread = threading.get_ident()
        try:
            with self._released:
                self._followers[thread] = None
            while not done.wait(self._check_interval):
                if self._must_give_up(thread):
                    return done.is_set()
            return True
        finally:
            with self._released:
                self._followers.pop(thread, None)

    def _must_give_up(self, thread: int) -> bool:
        with self._released:
            if self._threads is None or not self._is_stalled():
                return False
            excess = len(self._admitted) + len(self._followers) - self._threads
            return excess > 0 and thread in [*self._followers][-excess:]

    def _is_stalled(self) -> bool:
        """Whether threads are admitted, and all of them are stalled."""
        return bool(self._admitted) and max(self._admitted.values()) + STALL_TIMEOUT <= time.monotonic()

    def note_progress(self) -> None:
        """Record that the database has answered the current thread, which must be admitted."""
        with self._released:
            self._admitted[threading.get_ident()] = time.monotonic()

    def _wait(self, thread: int, threads: int) -> None:
        with self._released:
            # If admitted, this thread would stall as well, and until then the bulkhead would not count as stalled.
            if len(self._admitted) + len(self._followers) >= threads and self._is_stalled():
                raise errors.DatabaseBusy()
            while len(self._admitted) >= threads:
                timeout = max(self._admitted.values()) + STALL_TIMEOUT - time.monotonic()
                if timeout <= 0:
                    raise errors.DatabaseBusy()
                self._released.wait(timeout)
            self._admitted[thread] = time.monotonic()
