"""A bulkhead: some threads of a process may wait for the database, and one is kept for requests that need none."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from placement import errors

#: Seconds after which threads that use the database count as stalled: further ones are refused, and do not wait.
STALLED = 5.0

_current = threading.local()


def progressed() -> None:
    """Note that the database has answered this thread, which is at a work of many statements, and is not stalled."""
    wall: Bulkhead | None = getattr(_current, "wall", None)
    if wall is not None:
        wall.renew()


class Bulkhead:
    """Lets so many threads at a time into its blocks; a thread that is inside may enter again."""

    def __init__(self, threads: int | None = None) -> None:
        """:param threads: how many threads at a time; None is no bound."""
        self._threads = threads
        self._left = threading.Condition()
        #: When each thread that is inside came, or was answered last.
        self._inside: dict[int, float] = {}

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """A block for which a thread has to wait; raises DatabaseBusy if all that are inside seem to be stalled."""
        me = threading.get_ident()
        if self._threads is None or me in self._inside:
            yield
            return
        self._enter(me, self._threads)
        _current.wall = self
        try:
            yield
        finally:
            _current.wall = None
            with self._left:
                del self._inside[me]
                self._left.notify()

    def renew(self) -> None:
        """Count the time of this thread, which is inside, from now on."""
        with self._left:
            self._inside[threading.get_ident()] = time.monotonic()

    def _enter(self, me: int, threads: int) -> None:
        with self._left:
            while len(self._inside) >= threads:
                patience = max(self._inside.values()) + STALLED - time.monotonic()
                if patience <= 0:
                    raise errors.DatabaseBusy()
                self._left.wait(patience)
            self._inside[me] = time.monotonic()
