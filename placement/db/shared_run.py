"""Work shared by threads: one run serves every thread that asked for it before the run began."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from placement import errors
from placement.db.database import Database


class SharedRun:
    """Database work that one thread of a process runs at a time, for all threads that wait for it."""

    def __init__(self, database: Database, work: Callable[[], None]) -> None:
        self._database = database
        self._work = work
        self._locks: dict[int, threading.Lock] = {}
        #: The numbers of the last run begun and of the last run ended.
        self._begun = self._ended = 0
        self._failure: errors.Unavailable | None = None
        #: The process and the thread of the present run; a forked child may reuse the number of the thread.
        self._runner: tuple[int, int] | None = None

    @property
    def _lock(self) -> threading.Lock:
        """The lock of this process: a forked child must not wait for a lock that a thread of its parent held."""
        return self._locks.setdefault(os.getpid(), threading.Lock())

    @property
    def is_running_here(self) -> bool:
        """Whether the calling thread is running the work, and so must not call ``run``."""
        return self._runner == (os.getpid(), threading.get_ident())

    def run(self) -> None:
        """Run the work, or wait for another thread's run that begins after this call.

        Raises:
            DatabaseUnavailable, DatabaseBusy: The work raised it, and so does every thread that waited for the run.
        """
        begun = self._begun
        # Waiting for another thread's run is waiting for the database, so it also needs admission.
        with self._database.bulkhead.admit(), self._lock:
            # A run that began before this call may have missed a commit that the caller knows of; a later run sees it.
            if self._ended <= begun:
                self._run()
            self._raise_failure()

    def try_run(self) -> bool:
        """Run the work unless another thread is running it; return whether it ran.  Failures are as for ``run``."""
        # Admission before the lock, as in ``run``: the threads that wait for the lock have been admitted.
        with self._database.bulkhead.admit():
            if not self._lock.acquire(blocking=False):
                return False
            try:
                self._run()
                self._raise_failure()
            finally:
                self._lock.release()
        return True

    def _run(self) -> None:
        self._begun += 1
        self._runner = os.getpid(), threading.get_ident()
        try:
            self._work()
            self._failure = None
        except errors.Unavailable as failure:
            # All threads that waited for this run raise it, instead of trying one after the other.
            self._failure = failure
        finally:
            self._runner = None
        self._ended = self._begun

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise type(self._failure)() from self._failure
