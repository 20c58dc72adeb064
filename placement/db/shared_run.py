"""Work that threads share: one run of it serves each thread that asked for it before the run began."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from placement import errors
from placement.db.database import Database


class SharedRun:
    """Work with the database that one thread of a process does at a time, for all that wait for it."""

    def __init__(self, database: Database, work: Callable[[], None]) -> None:
        self._database = database
        self._work = work
        self._locks: dict[int, threading.Lock] = {}
        #: The numbers of the last run that has begun, and of the last that has ended.
        self._begun = self._ended = 0
        self._failure: errors.Unavailable | None = None

    @property
    def _lock(self) -> threading.Lock:
        """The lock of this process: a forked child must not wait for one that a thread of its parent held."""
        return self._locks.setdefault(os.getpid(), threading.Lock())

    def run(self) -> None:
        """Return after a run that began after this call.

        Raises:
            DatabaseUnavailable, DatabaseBusy: As the work, in all threads that waited for the run.
        """
        begun = self._begun
        # A thread that waits for another thread's run waits for the database, so it needs admission too.
        with self._database.bulkhead.admit(), self._lock:
            # A run that began before this call may lack a commit that the caller knows of; any later one has it.
            if self._ended <= begun:
                self._run()
            self._raise_failure()

    def try_run(self) -> bool:
        """Run it unless another thread does, and return whether it was run; raises as ``run``."""
        # Admission comes first here, too: those that wait for the lock have it.
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
        try:
            self._work()
            self._failure = None
        except errors.Unavailable as failure:
            # Raised in all threads that waited for this run, instead of one attempt after the other.
            self._failure = failure
        self._ended = self._begun

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise type(self._failure)() from self._failure
