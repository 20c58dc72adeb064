"""The lock that lets one thread of this process write at a time."""

from __future__ import annotations

import threading

from placement.db.engine.timeouts import LOCK_TIMEOUT
from placement.db.writes.transaction import Collision


class WriteLock:
    """A reentrant lock of the threads of this process; a thread that waits too long for it collides.

    SQLite has one writer at a time.  Threads wait here instead of polling the file's lock.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=LOCK_TIMEOUT):
            raise Collision

    def __exit__(self, *_: object) -> None:
        self._lock.release()
